// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The gateways to chat systems, whether their adapters answer, and the ledgers of all of them: also of gateways that are gone.
import { useRef } from 'preact/hooks';
import { inNamespace } from '../api/client';
import type { Gateway } from '../api/gateway';
import { useList } from '../api/list';
import { useKeys } from '../keys';
import { href, location, set } from '../router';
import { ago } from '../ui/format';
import { Listed } from '../ui/listed';
import { Phase } from '../ui/phase';
import { Table, type Column } from '../ui/table';
import { Text, oneLine } from '../ui/text';
import { adapterOf, endpointOf, gatewayHref, stateOf } from './gateway/about';
import { Deliveries, Events } from './gateway/records';

const tabs = [
  { id: '', title: 'Gateways', view: All },
  { id: 'events', title: 'Events', view: Events },
  { id: 'deliveries', title: 'Deliveries', view: Deliveries },
];

export function Gateways() {
  const tab = tabs.find((t) => t.id === (location.value.query.get('tab') ?? '')) ?? tabs[0];
  useKeys(tabs.map((t, i) => ({ key: String(i + 1), label: t.title, run: () => document.getElementById(`tab-${t.id}`)?.click() })));
  const View = tab?.view ?? All;
  return (
    <>
      <div class="title"><h1>Gateways</h1></div>
      <nav class="tabs" aria-label="Gateways and what went through all of them">
        {tabs.map((t) => <a key={t.id} id={`tab-${t.id}`} href={href('/gateways', { tab: t.id })} aria-current={t === tab ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      <View key={tab?.id} />
    </>
  );
}

const columns: Array<Column<Gateway>> = [
  { title: 'Gateway', cell: (g) => <Text>{g.metadata.name}</Text>, kind: 'wide' },
  { title: 'State', cell: (g) => <Phase phase={stateOf(g)} /> },
  { title: 'Adapter', cell: (g) => g.status?.conditions && <Phase phase={g.status.connected ? 'Connected' : 'NotConnected'} /> },
  { title: 'Class', cell: (g) => <Text>{g.spec.gatewayClassName}</Text>, kind: 'minor' },
  { title: 'Program', cell: (g) => <Text>{oneLine(adapterOf(g), 40)}</Text>, kind: 'minor' },
  { title: 'Last answer', cell: (g) => ago(g.status?.lastSuccessfulProbe), kind: 'number' },
];

function All() {
  const list = useList<Gateway>(inNamespace('gateways'), {}, 0);
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a gateway', run: () => search.current?.focus() }]);
  const text = location.value.query.get('q') ?? '';
  const rows = list.items.value
    .filter((g) => [g.metadata.name, g.spec.gatewayClassName, endpointOf(g)].join(' ').toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  return (
    <>
      <div class="bar"><input ref={search} type="search" placeholder="Name, class or address" aria-label="Find a gateway" value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      <Listed list={list} what="gateways" shown={rows.length} none={<>No chat system is connected in this namespace yet. Create a <code>Gateway</code> and a <code>GatewayBinding</code>.</>} unmatched="No gateway matches what you look for.">
        <Table label="Gateways" rows={rows} columns={columns} id={(g) => g.metadata.uid ?? g.metadata.name} link={(g) => gatewayHref(g.metadata.name)} failed={(g) => stateOf(g) === 'NotReady'} below={(g) => (
          <>
            <div class="about"><Text>{endpointOf(g)}</Text></div>
            {g.status?.message && <div class="about bad"><Text>{oneLine(g.status.message)}</Text></div>}
          </>
        )} />
      </Listed>
    </>
  );
}
