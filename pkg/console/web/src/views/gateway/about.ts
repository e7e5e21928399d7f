// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What is said of gateways and their records in more than one view.
import type { Delivery, Gateway, GatewayEvent, Place } from '../../api/gateway';
import { may } from '../../api/may';
import { href, type Params } from '../../router';
import type { Action } from '../../ui/act';
import { words } from '../../ui/format';

// stateOf says whether a gateway works. One that no controller has looked at is pending.
export function stateOf({ status }: Gateway): string {
  return status?.conditions?.length ? (status.ready ? 'Ready' : 'NotReady') : 'Pending';
}

export function endpointOf({ spec: { adapter }, status }: Gateway): string {
  const { name, port } = adapter.serviceRef ?? {};
  return status?.resolvedEndpoint || adapter.endpoint || (name ? `Service ${name}${port ? `, port ${port}` : ''}` : '');
}

export function adapterOf({ status }: Gateway): string {
  const { adapterName, adapterVersion } = status?.observedCapabilities ?? {};
  return [adapterName, adapterVersion].filter(Boolean).join(' ');
}

export function gatewayHref(name: string, params: Params = {}): string {
  return href(`/gateways/${encodeURIComponent(name)}`, params);
}

export function conversationHref(gateway: string, session: string): string {
  return href(`/gateways/${encodeURIComponent(gateway)}/${encodeURIComponent(session)}`);
}

// placeOf names a place from the particular to the general.
export function placeOf({ accountId, contextId, threadId }: Place): string {
  return [threadId, contextId, accountId].filter(Boolean).join(' · ');
}

// because joins the reason and the message of a record.
export function because(reason: string | undefined, message: string | undefined): string {
  return [words(reason ?? ''), message].filter(Boolean).join(': ');
}

// failed reports whether nothing comes of a record any more, although something should have.
export function failed({ status }: GatewayEvent | Delivery): boolean {
  return ['Rejected', 'DeadLettered', 'Failed', 'Expired'].includes(status?.state ?? '');
}

// uncertain reports whether a text may be in the conversation although nobody said that it is.
export function uncertain({ status }: Delivery): boolean {
  return status?.outcomeUnknown === true && status.state !== 'Delivered';
}

// Whoever steps in must be permitted to change the gateway besides.
const operates = () => may('get', 'gateways') && may('update', 'gateways');

// replays returns what can be asked for about an event.
export function replays({ status }: GatewayEvent): Action[] {
  if (!operates() || !['Rejected', 'DeadLettered', 'Expired'].includes(status?.state ?? '')) return [];
  const told = status?.state === 'Expired' ? 'The conversation was told that there is no answer. Have it answered now, by another task?' : undefined;
  return [{ title: 'Replay', sub: 'replay', kind: 'GatewayEvent', asks: told, done: 'It was routed again.' }];
}

// steps returns what can be asked for about a delivery.
export function steps(d: Delivery): Action[] {
  if (!operates()) return [];
  const state = d.status?.state ?? '';
  const maybe = uncertain(d) ? 'It may have been posted already: it was sent, and no answer came. Look into the conversation first. ' : '';
  if (state === 'DeadLettered' || state === 'Failed') return [{ title: 'Retry', sub: 'retry', kind: 'GatewayDelivery', asks: maybe && `${maybe}Send it once more?`, done: 'It is sent again.' }];
  if (state === 'Pending' || state === 'RetryScheduled') return [{ title: 'Abandon', sub: 'abandon', kind: 'GatewayDelivery', asks: `${maybe}Give it up? It is not sent any more, and the next answer of its conversation is.`, done: 'It was given up.' }];
  return [];
}
