// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The monitors of repositories: what each looks after, what waits and what is blocked.
import { useRef } from 'preact/hooks';
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import type { Monitor } from '../api/monitor';
import { useKeys } from '../keys';
import { href, location, set } from '../router';
import { ago, count } from '../ui/format';
import { Listed } from '../ui/listed';
import { Phase } from '../ui/phase';
import { Table, type Column } from '../ui/table';
import { Text, oneLine } from '../ui/text';
import { concerns, phaseOf } from './monitor/about';

const blocked = (m: Monitor) => (m.status?.blockedItems ?? 0) + (m.status?.blockedIssues ?? 0);

const columns: Array<Column<Monitor>> = [
  { title: 'Monitor', cell: (m) => <Text>{m.metadata.name}</Text>, kind: 'wide' },
  { title: 'Phase', cell: (m) => <Phase phase={phaseOf(m)} /> },
  { title: 'Pull requests', cell: (m) => count(m.status?.openPullRequests ?? 0), kind: 'number' },
  { title: 'Reviews', cell: (m) => count(m.status?.pendingReviews ?? 0), kind: 'number minor' },
  { title: 'Repairs', cell: (m) => count(m.status?.activeRepairs ?? 0), kind: 'number minor' },
  { title: 'Ready to merge', cell: (m) => count(m.status?.mergeReadyItems ?? 0), kind: 'number minor' },
  { title: 'Issues', cell: (m) => count(m.status?.openIssues ?? 0), kind: 'number' },
  { title: 'Work on issues', cell: (m) => count(m.status?.pendingIssueActions ?? 0), kind: 'number minor' },
  { title: 'Blocked', cell: (m) => count(blocked(m)), kind: 'number' },
  { title: 'Last run', cell: (m) => ago(m.status?.lastRunTime), kind: 'number' },
];

// Below is the repository, and what is wrong with the monitor.
function Below({ monitor }: { monitor: Monitor }) {
  return (
    <>
      <div class="about"><Text>{monitor.spec.repoURL}</Text></div>
      {concerns(monitor).map((c) => <div key={c.type} class="about bad"><Text>{oneLine(c.message ?? '')}</Text></div>)}
    </>
  );
}

export function Monitors() {
  const list = useList<Monitor>(inNamespace('repositorymonitors'));
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a monitor', run: () => search.current?.focus() }]);
  const text = location.value.query.get('q') ?? '';
  const rows = list.items.value
    .filter((m) => `${m.metadata.name} ${m.spec.repoURL}`.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  return (
    <>
      <div class="title">
        <h1>Monitors</h1>
        <div class="tools"><input ref={search} type="search" placeholder="Name or repository" aria-label="Find a monitor" value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      </div>
      <Listed list={list} what="monitors" shown={rows.length} none={<>No repository is monitored in this namespace yet. Create a RepositoryMonitor with <code>platform monitor create</code>.</>} unmatched="No monitor matches what you look for.">
        <Table label="Monitors" rows={rows} columns={columns} id={(m) => m.metadata.uid ?? m.metadata.name} link={(m) => href(`/monitors/${encodeURIComponent(m.metadata.name)}`)} failed={(m) => phaseOf(m) === 'Error'} below={(m) => <Below monitor={m} />} />
      </Listed>
    </>
  );
}
