// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All tasks of a namespace.
import { useRef } from 'preact/hooks';
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { location, set } from '../router';
import { Listed } from '../ui/listed';
import { phaseOf } from '../ui/phase';
import { TaskTable, agentOf, lasted, started } from '../ui/tasktable';

const phases: Record<string, string[]> = {
  '': [],
  active: ['Pending', 'Running', 'Finalizing', 'WaitingForApproval', 'Terminating'],
  waiting: ['WaitingForApproval'],
  succeeded: ['Succeeded'],
  failed: ['Failed'],
  cancelled: ['Cancelled'],
};

const tokens = (t: Task) => (t.status?.usage?.inputTokens ?? 0) + (t.status?.usage?.outputTokens ?? 0);
const orders: Record<string, (a: Task, b: Task) => number> = {
  '': (a, b) => started(b).localeCompare(started(a)) || a.metadata.name.localeCompare(b.metadata.name),
  duration: (a, b) => (lasted(b) || 0) - (lasted(a) || 0),
  tokens: (a, b) => tokens(b) - tokens(a),
  name: (a, b) => a.metadata.name.localeCompare(b.metadata.name),
};

export function Tasks() {
  const list = useList<Task>(inNamespace('tasks'));
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a task', run: () => search.current?.focus() }]);
  const query = location.value.query;
  const text = query.get('q') ?? '';
  const phase = query.get('phase') ?? '';
  const sort = query.get('sort') ?? '';
  const wanted = phases[phase] ?? [];
  const rows = list.items.value
    .filter((t) => wanted.length === 0 || wanted.includes(phaseOf(t)))
    .filter((t) => `${t.metadata.name} ${agentOf(t)}`.toLowerCase().includes(text.toLowerCase()))
    .sort(orders[sort] ?? orders['']);
  return (
    <>
      <div class="title">
        <h1>Tasks</h1>
        <div class="tools">
          <input ref={search} type="search" placeholder="Name or agent" aria-label="Find a task by its name or agent" value={text} onInput={(e) => set({ q: e.currentTarget.value })} />
          <label class="field">Phase
            <select value={phase} onChange={(e) => set({ phase: e.currentTarget.value })}>
              <option value="">All</option>
              {Object.keys(phases).filter(Boolean).map((p) => <option key={p} value={p}>{p}</option>)}
            </select>
          </label>
          <label class="field">Sort by
            <select value={sort} onChange={(e) => set({ sort: e.currentTarget.value })}>
              <option value="">start</option>
              {Object.keys(orders).filter(Boolean).map((o) => <option key={o} value={o}>{o}</option>)}
            </select>
          </label>
        </div>
      </div>
      <Listed list={list} what="tasks" shown={rows.length} none={<>There are no tasks in this namespace yet. Create one with <code>kubectl apply</code>.</>} unmatched="No task matches what you look for.">
        <TaskTable tasks={rows} label="Tasks" />
      </Listed>
    </>
  );
}
