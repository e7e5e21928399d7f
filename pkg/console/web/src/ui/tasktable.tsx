// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Tasks as rows.
import { usageOf, useRunning } from '../api/running';
import type { Task } from '../api/types';
import { taskHref } from '../router';
import { ago, duration, now, short } from './format';
import { Phase, ended, phaseOf } from './phase';
import { Table, type Column } from './table';

// took returns how long a task has run. Its times are in whole seconds, so nothing finer is said.
export function took(t: Task): string {
  const ms = lasted(t);
  if (ms < 1000) return 'under 1 s';
  return ms < 60_000 ? `${Math.floor(ms / 1000)} s` : duration(ms);
}

// lasted returns how long a task has run, in milliseconds; NaN if it has not started.
function lasted(t: Task): number {
  const { startTime, completionTime, phase } = t.status ?? {};
  if (!startTime) return NaN;
  return (completionTime ? Date.parse(completionTime) : ended(phase) ? NaN : now.value) - Date.parse(startTime);
}

export function started(t: Task): string {
  return t.status?.startTime ?? t.metadata.creationTimestamp ?? '';
}

// byStart orders tasks by when they started, and those of one second by when they were created.
export function byStart(a: Task, b: Task): number {
  return started(a).localeCompare(started(b)) || (a.status?.creationRevision ?? 0) - (b.status?.creationRevision ?? 0);
}

export function agentOf(t: Task): string {
  return t.status?.agentName || t.spec.agentRef?.name || '';
}

const columns: Array<Column<Task>> = [
  { title: 'Task', cell: (t) => t.metadata.name, kind: 'wide' },
  { title: 'Phase', cell: (t) => <Phase phase={phaseOf(t)} /> },
  { title: 'Agent', cell: (t) => agentOf(t) || t.spec.type, kind: 'minor' },
  { title: 'Model', cell: (t) => t.status?.model ?? t.spec.ai?.model ?? '', kind: 'minor' },
  { title: 'In', cell: (t) => short(usageOf(t)?.inputTokens), kind: 'number minor' },
  { title: 'Out', cell: (t) => short(usageOf(t)?.outputTokens), kind: 'number minor' },
  { title: 'Duration', cell: (t) => took(t), kind: 'number' },
  { title: 'Started', cell: (t) => ago(started(t)), kind: 'number minor' },
];

export function TaskTable({ tasks, label, link = taskHref }: { tasks: Task[]; label: string; link?: (name: string) => string }) {
  useRunning(tasks);
  return <Table label={label} rows={tasks} columns={columns} id={(t) => t.metadata.uid ?? t.metadata.name} link={(t) => link(t.metadata.name)} failed={(t) => phaseOf(t) === 'Failed'} />;
}
