// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Tasks as rows.
import { pending } from '../api/pending';
import { usageOf, useRunning } from '../api/running';
import { about, why } from '../api/told';
import type { Approval, Task } from '../api/types';
import { href, taskHref } from '../router';
import { ago, duration, now, short, words } from './format';
import { Phase, ended, phaseOf } from './phase';
import { Table, type Column, type Marks } from './table';
import { Text, oneLine } from './text';

// took returns how long a task has run. Its times are in whole seconds, so nothing finer is said. Every view says this, and it is what
// the commands and the server say (Lasted of the API's types): from the start of the first attempt to the end.
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
  { title: 'Phase', cell: (t) => <Waits task={t} /> },
  { title: 'Agent', cell: (t) => agentOf(t) || t.spec.type, kind: 'minor' },
  { title: 'Model', cell: (t) => t.status?.model ?? t.spec.ai?.model ?? '', kind: 'minor' },
  { title: 'In', cell: (t) => short(usageOf(t)?.inputTokens), kind: 'number minor' },
  { title: 'Out', cell: (t) => short(usageOf(t)?.outputTokens), kind: 'number minor' },
  { title: 'Duration', cell: (t) => took(t), kind: 'number' },
  { title: 'Started', cell: (t) => ago(started(t)), kind: 'number minor' },
];

// asks returns the decisions that a task waits for, as far as they are known.
export function asks(task: Task): Approval[] {
  return pending.value.filter((a) => a.spec.taskName === task.metadata.name && (a.spec.taskUID ?? task.metadata.uid) === task.metadata.uid);
}

// Waits is the phase of a task. What a task waits for is a click away.
export function Waits({ task }: { task: Task }) {
  const phase = phaseOf(task);
  if (phase !== 'WaitingForApproval') return <Phase phase={phase} />;
  const { name } = task.metadata;
  const [one, ...more] = asks(task);
  return <a href={one && more.length === 0 ? href(`/approvals/${one.metadata.name}`) : href('/approvals', { q: name })} title="Show what it waits for"><Phase phase={phase} /></a>;
}

// Below is what a task is about, and why it has not succeeded.
function Below({ task }: { task: Task }) {
  const what = about(task);
  const { reason, message } = why(task);
  const failed = task.status?.phase === 'Failed';
  const waits = phaseOf(task) === 'WaitingForApproval'; // the phase leads to what it waits for
  const said = waits ? '' : message && reason && failed ? `${words(reason)}: ${message}` : message || words(reason);
  return (
    <>
      {what && <div class="about"><Text>{what}</Text></div>}
      {said && <div class={`about ${failed ? 'bad' : ''}`}><Text>{oneLine(said)}</Text></div>}
    </>
  );
}

interface Props {
  tasks: Task[];
  label: string;
  link?: (name: string) => string;
  marks?: Marks<Task> | undefined;
}

export function TaskTable({ tasks, label, link = taskHref, marks }: Props) {
  useRunning(tasks);
  return (
    <Table
      label={label} rows={tasks} columns={columns} id={(t) => t.metadata.uid ?? t.metadata.name} link={(t) => link(t.metadata.name)}
      failed={(t) => phaseOf(t) === 'Failed'} below={(t) => <Below task={t} />} marks={marks}
    />
  );
}
