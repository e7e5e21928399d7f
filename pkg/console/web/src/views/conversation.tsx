// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One conversation of a gateway: what was written, the newest first, and below it what was answered.
import { useRecords, type Delivery, type GatewayEvent } from '../api/gateway';
import { href } from '../router';
import { Listed } from '../ui/listed';
import { Notice } from '../ui/states';
import { useSteps } from '../ui/steps';
import { Text } from '../ui/text';
import { gatewayHref, placeOf } from './gateway/about';
import { Sent, Written } from './gateway/record';
import { part } from './gateway/records';

export function ConversationView({ params }: { params: Record<string, string> }) {
  const { gateway = '', name: session = '' } = params;
  const events = useRecords<GatewayEvent>('events', { gateway, session }, part);
  const answers = useRecords<Delivery>('deliveries', { gateway, session }, 4 * part); // an event may have several
  const box = useSteps<HTMLDivElement>('record', () => undefined);
  const rows = events.items.value;
  const to = new Map<string, Delivery[]>(); // by event
  for (const d of answers.items.value) to.set(d.spec.eventId, [d, ...(to.get(d.spec.eventId) ?? [])]); // the oldest first
  const about = rows[0]?.spec;
  return (
    <>
      <p class="small"><a href={href('/gateways')}>Gateways</a> / <a href={gatewayHref(gateway)}><Text>{gateway}</Text></a></p>
      <div class="title"><h1><Text>{about ? placeOf(about) : session}</Text></h1></div>
      <Notice error={rows.length > 0 && answers.error.value} />
      <Listed list={events} what="events" shown={rows.length} none="Nothing is kept of what was written in this conversation." unmatched="">
        <p class="muted small">The newest is first. The session is <Text>{session}</Text>.</p>
        <div ref={box} class="transcript">
          {rows.map((e) => (
            <div key={e.metadata.name} role="group" aria-label="What was written and what was answered">
              <Written event={e} />
              {to.get(e.metadata.name)?.map((d) => <Sent key={d.metadata.name} delivery={d} />)}
              {e.status?.deliveryId && !answers.loading.value && !to.has(e.metadata.name) && <p class="muted reply">Its delivery <Text>{e.status.deliveryId}</Text> is not kept, or is not shown.</p>}
            </div>
          ))}
        </div>
      </Listed>
    </>
  );
}
