// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What tasks can use: agents, providers, tools and skills.
import { useComputed } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { get, inNamespace } from '../api/client';
import type { Entry } from '../api/kinds';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import type { List } from '../api/types';
import { useKeys } from '../keys';
import { href, location, set } from '../router';
import { Listed } from '../ui/listed';
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
  const objects = useList<Entry>(inNamespace(kind.resource));
  const builtin = useLoad(kind.builtin && may('list', kind.builtin) ? inNamespace(kind.builtin) : '', async () => (await get<List<Entry>>(inNamespace(kind.builtin ?? ''))).items.filter((e) => e.spec.builtin));
  const list = { ...objects, items: useComputed(() => [...(builtin.data.value ?? []), ...objects.items.value]) };
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: `Find among ${kind.title.toLowerCase()}`, run: () => search.current?.focus() }]);
  const text = location.value.query.get('q') ?? '';
  const rows = list.items.value
    .filter((e) => `${e.metadata.name} ${kind.about(e)}`.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  const columns: Array<Column<Entry>> = [
    { title: 'Name', cell: (e) => e.metadata.name, kind: 'wide' },
    ...kind.columns,
    { title: 'State', cell: (e) => <span class={`phase ${state(e).tone}`}>{state(e).text}</span> },
  ];
  return (
    <>
      <div class="bar"><input ref={search} type="search" placeholder="Name or text" aria-label={`Find among ${kind.title.toLowerCase()}`} value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      <Listed list={list} what={kind.title.toLowerCase()} shown={rows.length} none={`There are no ${kind.title.toLowerCase()} in this namespace.`} unmatched="Nothing matches what you look for.">
        <Table label={kind.title} rows={rows} columns={columns} id={(e) => e.metadata.uid ?? e.metadata.name} link={(e) => href(`/catalogue/${e.spec.builtin ? kind.builtin : kind.resource}/${encodeURIComponent(e.metadata.name)}`)} />
      </Listed>
    </>
  );
}
