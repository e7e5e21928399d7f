// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The conversations of a gateway, which are sessions, as its newest events show them; and which Agents answer in which of them.
import { inNamespace } from '../../api/client';
import { useRecords, type Binding, type GatewayEvent } from '../../api/gateway';
import { useList } from '../../api/list';
import { ago, count, words } from '../../ui/format';
import { Listed } from '../../ui/listed';
import { Phase } from '../../ui/phase';
import { Table, type Column } from '../../ui/table';
import { Text, oneLine } from '../../ui/text';
import { because, conversationHref, failed, gatewayHref, placeOf } from './about';

const part = 200; // events

// Conversation is a session, with those of its events that were read.
interface Conversation {
  name: string;
  last: GatewayEvent;
  events: number;
  open: number;
  failed: number;
}

function grouped(events: GatewayEvent[]): Conversation[] {
  const all = new Map<string, Conversation>();
  for (const e of events) {
    const name = e.status?.sessionName;
    if (!name) continue; // it was rejected
    const c = all.get(name) ?? { name, last: e, events: 0, open: 0, failed: 0 };
    c.events++;
    if (failed(e)) c.failed++;
    else if (e.status?.state !== 'Completed') c.open++;
    all.set(name, c);
  }
  return [...all.values()];
}

const conversation: Array<Column<Conversation>> = [
  { title: 'Conversation', cell: (c) => <Text>{placeOf(c.last.spec)}</Text>, kind: 'wide' },
  { title: 'Newest event', cell: (c) => <Phase phase={c.last.status?.state ?? 'Pending'} /> },
  { title: 'Agent', cell: (c) => <Text>{c.last.status?.agentName}</Text>, kind: 'minor' },
  { title: 'Binding', cell: (c) => <Text>{c.last.status?.bindingName}</Text>, kind: 'minor' },
  { title: 'Events', cell: (c) => count(c.events), kind: 'number minor' },
  { title: 'Open', cell: (c) => count(c.open), kind: 'number' },
  { title: 'Not answered', cell: (c) => count(c.failed), kind: 'number' },
  { title: 'Written', cell: (c) => ago(c.last.spec.createdAt), kind: 'number' },
];

export function Conversations({ gateway }: { gateway: string }) {
  const list = useRecords<GatewayEvent>('events', { gateway }, part);
  const rows = grouped(list.items.value);
  return (
    <>
      <Listed list={list} what="events" shown={rows.length} none="Nobody has written anything yet, or it is not kept any more." unmatched="Nothing of what was written belongs to a conversation: see why it was rejected among the events.">
        <p class="muted small">From the newest {count(list.items.value.length)} events.</p>
        <Table label="Conversations" rows={rows} columns={conversation} id={(c) => c.name} link={(c) => conversationHref(gateway, c.name)} failed={(c) => c.failed > 0} below={({ last }) => (
          <>
            <div class="about"><Text>{oneLine(`${last.spec.senderId}: ${last.spec.text}`)}</Text></div>
            {last.status?.state !== 'Completed' && last.status?.stateMessage && <div class={`about ${failed(last) ? 'bad' : ''}`}><Text>{oneLine(because(last.status.reason, last.status.stateMessage))}</Text></div>}
          </>
        )} />
      </Listed>
    </>
  );
}

const senders = ({ senderPolicy: p }: Binding['spec']) => (p?.mode === 'all' ? 'everybody' : count(p?.allowedSenderIds?.length ?? 0));

const binding: Array<Column<Binding>> = [
  { title: 'Binding', cell: (b) => <Text>{b.metadata.name}</Text>, kind: 'wide' },
  { title: 'State', cell: (b) => <Phase phase={b.status ? (b.status.ready ? 'Ready' : 'NotReady') : 'Pending'} /> },
  { title: 'Agent', cell: (b) => <Text>{b.spec.agentRef.name}</Text> },
  { title: 'One session for', cell: (b) => <Text>{[words(b.spec.session?.mode ?? 'context'), b.spec.session?.name].filter(Boolean).join(' ')}</Text>, kind: 'minor' },
  { title: 'Who may write', cell: (b) => senders(b.spec), kind: 'number' },
  { title: 'Last event', cell: (b) => ago(b.status?.lastInboundActivity), kind: 'number minor' },
];

export function Bindings({ gateway }: { gateway: string }) {
  const list = useList<Binding>(inNamespace('gatewaybindings'), { fieldSelector: `spec.gatewayRef.name=${gateway}` }, 0);
  const rows = [...list.items.value].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  return (
    <Listed list={list} what="bindings" shown={rows.length} none="No Agent answers on this gateway yet: it has no GatewayBinding." unmatched="">
      <Table label="Bindings" rows={rows} columns={binding} id={(b) => b.metadata.uid ?? b.metadata.name} link={(b) => gatewayHref(gateway, { tab: 'events', binding: b.metadata.name })} failed={(b) => Boolean(b.status && !b.status.ready)} below={(b) => (
        <>
          <div class="about"><Text>{[placeOf(b.spec.match), b.spec.match.senderId && `only ${b.spec.match.senderId}`].filter(Boolean).join(', ')}</Text></div>
          {!b.status?.ready && b.status?.message && <div class="about bad"><Text>{oneLine(b.status.message)}</Text></div>}
        </>
      )} />
    </Listed>
  );
}
