// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All tasks of a namespace, in the order that was chosen.
import { useComputed, type ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ListState } from '../api/list';
import { useTasks, type TaskQuerySpec } from '../api/taskquery';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { location, set } from '../router';
import { Listed } from '../ui/listed';
import { phases } from '../ui/phase';
import { TaskTable } from '../ui/tasktable';

const orders: Record<string, TaskQuerySpec> = {
  '': { orderBy: 'created', descending: true },
  started: { orderBy: 'started', descending: true },
  duration: { orderBy: 'duration', descending: true },
  tokens: { orderBy: 'tokens', descending: true },
  name: { orderBy: 'name' },
};

export function Tasks() {
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a task', run: () => search.current?.focus() }]);
  const query = location.value.query;
  const text = query.get('q') ?? '';
  const phase = query.get('phase') ?? '';
  const sort = query.get('sort') ?? '';
  const order = orders[sort] ?? { orderBy: 'created', descending: true };
  const found = useTasks({ ...order, phases: phases[phase], text: text || undefined });
  const items: ReadonlySignal<Task[]> = useComputed(() => found.data.value?.tasks ?? []);
  const rest = useComputed(() => (found.data.value ? found.data.value.matched - found.data.value.tasks.length : 0));
  const list: ListState<Task> = { items, rest, error: found.error, loading: found.loading, more: found.more };
  const all = !phase && !text;
  return (
    <>
      <div class="title">
        <h1>Tasks</h1>
        <div class="tools">
          <input ref={search} type="search" placeholder="Name or agent" aria-label="Find a task by its name or agent" maxLength={256} value={text} onInput={(e) => set({ q: e.currentTarget.value })} />
          <label class="field">Phase
            <select value={phase} onChange={(e) => set({ phase: e.currentTarget.value })}>
              <option value="">All</option>
              {Object.keys(phases).map((p) => <option key={p} value={p}>{p}</option>)}
            </select>
          </label>
          <label class="field">Sort by
            <select value={sort} onChange={(e) => set({ sort: e.currentTarget.value })}>
              <option value="">created</option>
              {Object.keys(orders).filter(Boolean).map((o) => <option key={o} value={o}>{o}</option>)}
            </select>
          </label>
        </div>
      </div>
      <Listed list={list} what="tasks" shown={items.value.length} none={all ? <>There are no tasks in this namespace yet. Create one with <code>kubectl apply</code>.</> : 'No task matches what you look for.'} unmatched="">
        <TaskTable tasks={items.value} label="Tasks" />
      </Listed>
    </>
  );
}
