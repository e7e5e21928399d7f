// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The tasks of a namespace that somebody looks for, in the order that was chosen, and what can be done with several of them at once.
import { useComputed, useSignal, type ReadonlySignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ListState } from '../api/list';
import { may } from '../api/may';
import { useTasks } from '../api/taskquery';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { go, href } from '../router';
import { count } from '../ui/format';
import { Listed } from '../ui/listed';
import type { Marks } from '../ui/table';
import { TaskActions } from '../ui/taskactions';
import { TaskTable } from '../ui/tasktable';
import { Filters, filtered, wanted } from './tasks/filters';

const uid = (t: Task) => t.metadata.uid ?? '';

export function Tasks() {
  const search = useRef<HTMLInputElement>(null);
  const creates = may('create', 'tasks');
  const acts = creates || may('create', 'tasks/cancel') || may('delete', 'tasks') || may('patch', 'tasks');
  const form = href('/new');
  useKeys([
    { key: '/', label: 'Find a task', run: () => search.current?.focus() },
    ...(creates ? [{ key: 'n', label: 'New task', run: () => go(form) }] : []),
  ]);
  const found = useTasks(wanted());
  const items: ReadonlySignal<Task[]> = useComputed(() => found.data.value?.tasks ?? []);
  const rest = useComputed(() => (found.data.value ? found.data.value.matched - found.data.value.tasks.length : 0));
  const list: ListState<Task> = { items, rest, error: found.error, loading: found.loading, more: found.more };
  const marked = useSignal<ReadonlySet<string>>(new Set());
  const chosen = items.value.filter((t) => marked.value.has(uid(t))); // what is not shown is not acted on
  const mark = (uids: string[], on: boolean) => {
    const all = new Set(marked.value);
    for (const u of uids) on ? all.add(u) : all.delete(u);
    marked.value = all;
  };
  const marks: Marks<Task> = { has: (t) => marked.value.has(uid(t)), set: (rows, on) => mark(rows.map(uid), on), name: (t) => t.metadata.name };
  return (
    <>
      <div class="title">
        <h1>Tasks</h1>
        {found.data.value && <span class="muted">{count(found.data.value.matched)}{filtered() ? ' found' : ''}</span>}
        {creates && <div class="tools"><a class="button primary" href={form}>New task <kbd>n</kbd></a></div>}
      </div>
      <Filters tasks={items.value} search={search} />
      {acts && (
        <div class={`chosen ${chosen.length > 0 ? 'open' : ''}`}>
          {chosen.length > 0 && <span role="status">{count(chosen.length)} selected</span>}
          <TaskActions tasks={chosen} several done={(_, good) => (mark(good, false), found.reload())} />
          {chosen.length > 0 && <button type="button" class="quiet" onClick={() => (marked.value = new Set())}>Select none</button>}
        </div>
      )}
      <Listed list={list} what="tasks" shown={items.value.length} none={filtered() ? 'No task matches what you look for.' : <>There are no tasks in this namespace yet. {creates ? <a href={form}>Create one.</a> : <>Create one with <code>kubectl apply</code>.</>}</>} unmatched="">
        <TaskTable tasks={items.value} label="Tasks" marks={acts ? marks : undefined} />
      </Listed>
    </>
  );
}
