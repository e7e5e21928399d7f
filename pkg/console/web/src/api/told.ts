// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What lists and actions need to know of a task, whether it was read whole or told by a query.
import { promptOf } from './compare';
import type { Task } from './types';

const condition = (t: Task, type: string) => t.status?.conditions?.find((c) => c.type === type);
const holds = (t: Task, type: string) => condition(t, type)?.status === 'True';

// about returns what a task is to do, in a line: the first one of its prompt, or its command.
export function about(t: Task): string {
  if (t.summary) return t.summary.prompt ?? '';
  const [first = '', ...rest] = (promptOf(t).trim() || [...(t.spec.command ?? []), ...(t.spec.args ?? [])].join(' ')).slice(0, 1000).split('\n');
  return rest.some((l) => l.trim()) ? `${first.trimEnd()} …` : first;
}

// why returns what explains the phase of a task that has not succeeded: a reason, which may be empty, and what was said.
export function why(t: Task): { reason: string; message: string } {
  if (t.status?.phase === 'Succeeded') return { reason: '', message: '' };
  const failed = condition(t, 'Failed');
  return { reason: t.summary?.reason ?? (failed?.status === 'True' ? (failed.reason ?? '') : ''), message: (t.summary ? t.summary.message : t.status?.message) ?? '' };
}

// cancelled reports whether somebody has asked for the end of a task.
export function cancelled(t: Task): boolean {
  return t.summary?.reason === 'CancelRequested' || holds(t, 'CancelRequested');
}

// suspended reports whether a task is suspended; undefined if that has no effect on it, because it has no schedule and no iterations.
export function suspended(t: Task): boolean | undefined {
  if (t.summary) return t.summary.suspend;
  return t.spec.schedule || t.spec.suspend || condition(t, 'Iterating') ? Boolean(t.spec.suspend) : undefined;
}
