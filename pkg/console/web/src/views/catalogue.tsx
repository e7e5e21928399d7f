// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What tasks can use: agents, providers, tools and skills.
import { inNamespace } from '../api/client';
import type { Entry } from '../api/kinds';
import { useList } from '../api/list';
import { href, location, set } from '../router';
import { count } from '../ui/format';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { Table, type Column } from '../ui/table';
import { kinds, state, type Kind } from './catalogue/kinds';

export function Catalogue() {
  const id = location.value.query.get('kind') ?? '';
  const kind = kinds.find((k) => k.id === id) ?? kinds[0];
  return (
    <>
      <div class="title"><h1>Catalogue</h1></div>
      <nav class="tabs" aria-label="Kinds">
        {kinds.map((k) => <a key={k.id} href={href('/catalogue', { kind: k.id })} aria-current={k === kind ? 'page' : undefined}>{k.title}</a>)}
      </nav>
      {kind && <Entries key={kind.id} kind={kind} />}
    </>
  );
}

function Entries({ kind }: { kind: Kind }) {
  const { items, loading, error, rest, more } = useList<Entry>(inNamespace(kind.resource));
  const text = location.value.query.get('q') ?? '';
  const rows = items.value
    .filter((e) => `${e.metadata.name} ${kind.about(e)}`.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  const columns: Array<Column<Entry>> = [
    { title: 'Name', cell: (e) => e.metadata.name, kind: 'wide' },
    ...kind.columns,
    { title: 'State', cell: (e) => <span class={`phase ${state(e).tone}`}>{state(e).text}</span> },
  ];
  return (
    <>
      <div class="bar"><input type="search" placeholder="Name or text" aria-label={`Find among ${kind.title.toLowerCase()}`} value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      {items.value.length > 0 && <Notice error={error.value} />}
      {items.value.length === 0 && (error.value ? <Failure error={error.value} /> : loading.value && <Loading what={kind.title.toLowerCase()} />)}
      {!loading.value && !error.value && items.value.length === 0 && <Empty>There are no {kind.title.toLowerCase()} in this namespace.</Empty>}
      {items.value.length > 0 && rows.length === 0 && <Empty>Nothing matches what you look for.</Empty>}
      {rows.length > 0 && <Table label={kind.title} rows={rows} columns={columns} id={(e) => e.metadata.uid ?? e.metadata.name} link={(e) => href(`/catalogue/${kind.resource}/${encodeURIComponent(e.metadata.name)}`)} />}
      {rest.value !== 0 && <p class="more"><button type="button" onClick={more}>Load more</button> <span class="muted">{rest.value > 0 ? `${count(rest.value)} are not shown.` : ''}</span></p>}
    </>
  );
}
