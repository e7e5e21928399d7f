// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All conversations of a namespace.
import { useRef } from 'preact/hooks';
import { inNamespace } from '../api/client';
import type { Session } from '../api/kinds';
import { useList } from '../api/list';
import { may } from '../api/may';
import { useKeys } from '../keys';
import { href, location, set } from '../router';
import { ago, count, short } from '../ui/format';
import { Listed } from '../ui/listed';
import { Table, type Column } from '../ui/table';
import { Text } from '../ui/text';

const changed = (s: Session) => s.status?.updatedAt ?? s.metadata.creationTimestamp ?? '';

const columns: Array<Column<Session>> = [
  { title: 'Session', cell: (s) => <Text>{s.metadata.name}</Text>, kind: 'wide' },
  { title: 'Type', cell: (s) => s.spec.sessionType ?? 'task' },
  { title: 'Task at work', cell: (s) => <Text>{s.status?.activeTask ?? ''}</Text>, kind: 'minor' },
  { title: 'Messages', cell: (s) => count(s.status?.messageCount), kind: 'number' },
  { title: 'In', cell: (s) => short(s.status?.inputTokens), kind: 'number' },
  { title: 'Out', cell: (s) => short(s.status?.outputTokens), kind: 'number' },
  { title: 'Changed', cell: (s) => ago(changed(s)), kind: 'number' },
];

export function Sessions() {
  const list = useList<Session>(inNamespace('sessions'));
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a session', run: () => search.current?.focus() }]);
  const text = location.value.query.get('q') ?? '';
  const rows = list.items.value.filter((s) => s.metadata.name.toLowerCase().includes(text.toLowerCase())).sort((a, b) => changed(b).localeCompare(changed(a)) || a.metadata.name.localeCompare(b.metadata.name));
  return (
    <>
      <div class="title">
        <h1>Sessions</h1>
        <div class="tools">
          <input ref={search} type="search" placeholder="Name" aria-label="Find a session by its name" value={text} onInput={(e) => set({ q: e.currentTarget.value })} />
          {may('create', 'chats') && <a class="button primary" href={href('/chat')}>New chat</a>}
        </div>
      </div>
      <Listed list={list} what="sessions" shown={rows.length} none={<>There are no conversations in this namespace yet. A task begins one with <code>spec.sessionRef</code>.</>} unmatched="No session has this in its name.">
        <Table label="Sessions" rows={rows} columns={columns} id={(s) => s.metadata.uid ?? s.metadata.name} link={(s) => href(`/sessions/${encodeURIComponent(s.metadata.name)}`)} />
      </Listed>
    </>
  );
}
