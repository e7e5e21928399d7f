// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What somebody may do with tasks, beside reading them.
import { ended, phaseOf } from '../ui/phase';
import { chance } from './chance';
import { apiVersion, change, get, inNamespace, post, remove } from './client';
import { may } from './may';
import { cancelled, suspended } from './told';
import type { Task } from './types';

export interface Action {
  id: string;
  key: string;
  title: (tasks: Task[]) => string;
  done: string; // what became of a task
  rights: Array<[verb: string, resource: string]>;
  fits: (t: Task) => boolean; // whether the server would do it
  asks?: (n: string) => string; // the question before it is done, with the number of tasks in words
  reason?: boolean; // whether the server takes a reason
  act: (t: Task, reason: string) => Promise<string | undefined>; // the name of a task that was made
}

const path = (t: Task, ...sub: string[]) => inNamespace('tasks', t.metadata.name, ...sub);
const suspend = (on: boolean) => async (t: Task) => void (await change(path(t), { metadata: { uid: t.metadata.uid }, spec: { suspend: on } })) as undefined;
const over = (t: Task) => ended(t.status?.phase);

export const actions: Action[] = [
  {
    id: 'cancel', key: 'C', title: () => 'Cancel', done: 'cancelled', rights: [['create', 'tasks/cancel']], reason: true,
    fits: (t) => !over(t) && !t.metadata.deletionTimestamp && !cancelled(t),
    asks: (n) => `Cancel ${n}, with everything below that has not ended?`,
    act: async (t, reason) => void (await post(path(t, 'cancel'), { apiVersion, kind: 'TaskCancellation', ...(reason ? { reason } : {}) })) as undefined,
  },
  {
    id: 'rerun', key: 'R', title: (tasks) => (tasks.every((t) => t.status?.phase !== 'Succeeded') ? 'Retry' : 'Rerun'), done: 'run again', rights: [['get', 'tasks'], ['create', 'tasks']],
    fits: over, act: rerun,
  },
  { id: 'suspend', key: 'S', title: () => 'Suspend', done: 'suspended', rights: [['patch', 'tasks']], fits: (t) => !over(t) && suspended(t) === false, act: suspend(true) },
  { id: 'resume', key: 'S', title: () => 'Resume', done: 'resumed', rights: [['patch', 'tasks']], fits: (t) => !over(t) && suspended(t) === true, act: suspend(false) },
  {
    id: 'delete', key: 'D', title: () => 'Delete', done: 'deleted', rights: [['delete', 'tasks']],
    fits: (t) => phaseOf(t) !== 'Terminating' && !t.metadata.deletionTimestamp,
    asks: (n) => `Delete ${n}, with events, results and everything below?`,
    act: async (t) => void (await remove(path(t), t.metadata.uid)) as undefined,
  },
];

// offered returns what the viewer may do with some of the tasks, and with which of them.
export function offered(tasks: Task[]): Array<{ action: Action; tasks: Task[] }> {
  return actions.filter((a) => a.rights.every(([verb, resource]) => may(verb, resource)))
    .map((action) => ({ action, tasks: tasks.filter(action.fits) })).filter((o) => o.tasks.length > 0);
}

// What a new run does not take over: that of a schedule, as a run of it does not either, and what only the server sets.
const left = ['schedule', 'timeZone', 'concurrencyPolicy', 'startingDeadlineSeconds', 'successfulRunsHistoryLimit', 'failedRunsHistoryLimit', 'suspend', 'requestedBy', 'transaction'];

// again returns a new task with the spec of another and its own labels, without a name.
export function again(t: Task): { metadata: { labels: Record<string, string> }; spec: Task['spec'] } {
  const spec = Object.fromEntries(Object.entries(t.spec).filter(([field]) => !left.includes(field))) as unknown as Task['spec'];
  if (spec.sessionRef) spec.sessionRef = { ...spec.sessionRef, promptIncluded: false }; // the session has gone on since
  return { metadata: { labels: Object.fromEntries(Object.entries(t.metadata.labels ?? {}).filter(([key]) => !key.startsWith('platform.ai/'))) }, spec };
}

// named returns a name that nobody has: a word, and a part by chance.
export function named(word: string): string {
  return `${word.slice(0, 42).replace(/[-.]+$/, '')}-${chance(4)}`;
}

// create makes a task, and returns its name.
export async function create({ metadata, spec }: { metadata: { name: string; labels?: Record<string, string> }; spec: unknown }): Promise<string> {
  const made = await post<Task>(inNamespace('tasks'), { apiVersion, kind: 'Task', metadata, spec });
  return made.metadata.name;
}

async function rerun(t: Task): Promise<string> {
  const whole = await get<Task>(path(t));
  if (whole.metadata.uid !== t.metadata.uid) throw new Error('Another task has this name by now.');
  const { metadata, spec } = again(whole);
  return create({ metadata: { ...metadata, name: named(`${t.metadata.name.replace(/-rerun-[0-9a-z]{5,8}$/, '')}-rerun`) }, spec });
}
