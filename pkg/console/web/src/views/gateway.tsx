// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One gateway: whether it works, its conversations, and its ledgers. What is kept of one that is gone is shown, too.
import { apiVersion, inNamespace } from '../api/client';
import type { Gateway } from '../api/gateway';
import { useList } from '../api/list';
import { named } from '../api/paths';
import { useKeys } from '../keys';
import { href, location } from '../router';
import { Fact } from '../ui/eventdetails';
import { ago, words } from '../ui/format';
import { Long } from '../ui/long';
import { Phase } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { Text } from '../ui/text';
import { yaml } from '../ui/yaml';
import { adapterOf, endpointOf, gatewayHref, stateOf } from './gateway/about';
import { Bindings, Conversations } from './gateway/conversations';
import { Deliveries, Events } from './gateway/records';

const tabs = [
  { id: '', title: 'Conversations', view: Conversations },
  { id: 'events', title: 'Events', view: Events },
  { id: 'deliveries', title: 'Deliveries', view: Deliveries },
  { id: 'bindings', title: 'Bindings', view: Bindings },
];

export function GatewayView({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  const { items, error, loading } = useList<Gateway>(inNamespace('gateways'), named(name), 0);
  const gateway = items.value.find((g) => g.metadata.name === name);
  const at = location.value.query.get('tab') ?? '';
  const all = [...tabs.map(({ id, title }) => ({ id, title })), ...(gateway ? [{ id: 'yaml', title: 'YAML' }] : [])];
  useKeys(all.map((t, i) => ({ key: String(i + 1), label: t.title, run: () => document.getElementById(`tab-${t.id}`)?.click() })));
  const heading = <><p class="small"><a href={href('/gateways')}>Gateways</a></p><div class="title"><h1><Text>{name}</Text></h1>{gateway && <Phase phase={stateOf(gateway)} />}</div></>;
  if (!gateway && error.value) return <>{heading}<Failure error={error.value} /></>;
  if (!gateway && loading.value) return <>{heading}<Loading what="the gateway" /></>;
  const View = (tabs.find((t) => t.id === at) ?? tabs[0])?.view ?? Conversations;
  return (
    <>
      {heading}
      <Notice error={error.value} />
      {gateway ? <Summary gateway={gateway} /> : <Empty>There is no gateway of this name in the namespace. Below is what is kept of one that was there.</Empty>}
      <nav class="tabs" aria-label="What went through the gateway">
        {all.map((t) => <a key={t.id} id={`tab-${t.id}`} href={gatewayHref(name, { tab: t.id })} aria-current={t.id === at ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      {at === 'yaml' && gateway ? <GatewayYAML gateway={gateway} /> : <View key={at} gateway={name} />}
    </>
  );
}

function Summary({ gateway }: { gateway: Gateway }) {
  const { spec, status: s = {} } = gateway;
  const { contractVersion, capabilities = {} } = s.observedCapabilities ?? {};
  return (
    <>
      {(s.conditions ?? []).filter((c) => c.status !== 'True').map((c) => <p key={c.type} class="notice bad"><Text>{`${words(c.type)}: ${c.message || words(c.reason ?? '')}`}</Text></p>)}
      <dl class="facts">
        <Fact name="Class" value={spec.gatewayClassName} />
        <Fact name="Adapter at" value={endpointOf(gateway)} />
        <Fact name="Program" value={adapterOf(gateway)} />
        <Fact name="Protocol" value={contractVersion} />
        <Fact name="It can" value={Object.keys(capabilities).filter((c) => capabilities[c]).map(words).join(', ').toLowerCase()} />
        <Fact name="Last answer" value={ago(s.lastSuccessfulProbe)} />
      </dl>
    </>
  );
}

function GatewayYAML({ gateway }: { gateway: Gateway }) {
  const { managedFields: _, ...metadata } = gateway.metadata as Gateway['metadata'] & { managedFields?: unknown };
  return <Long text={yaml({ apiVersion, kind: 'Gateway', ...gateway, metadata })} label="The gateway as YAML" />;
}
