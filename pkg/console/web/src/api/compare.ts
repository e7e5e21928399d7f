// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The steps of runs, and how two runs are alike.
import { get, inNamespace } from './client';
import type { Event, EventPage, Task } from './types';

// stepTypes are what a run said and did. The rest of its events is about how it was run.
const stepTypes = ['ModelMessage', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallJudged', 'PlanUpdated', 'TaskMessageReceived', 'ApprovalApproved', 'ApprovalDeclined', 'ResultSubmitted', 'TaskSucceeded', 'TaskFailed', 'TaskCancelled'];
const page = 500;
const most = 5000; // steps of a run that are compared

export interface Steps {
  events: Event[];
  cut: boolean; // there are more
}

// steps reads the steps of a task after an event of it. Of known steps, which were read before, it reads only what follows them.
export async function steps(task: string, after: number, signal: AbortSignal, known?: Steps): Promise<Steps> {
  if (known?.cut) return known;
  const events = [...(known?.events ?? [])];
  for (let at = events.at(-1)?.seq ?? after; ;) {
    const q = new URLSearchParams({ after: String(at), limit: String(page) });
    for (const t of stepTypes) q.append('type', t);
    const p = await get<EventPage>(`${inNamespace('tasks', task, 'events')}?${q}`, signal);
    events.push(...p.events);
    const last = p.events.at(-1)?.seq;
    if (p.events.length < page || last === undefined) return { events, cut: false };
    if (events.length >= most) return { events, cut: true };
    at = last;
  }
}

// forkedFrom returns the event of a task after which another one was forked from it; -1 if it was not.
export function forkedFrom(t: Task | undefined, source: Task | undefined): number {
  const a = t?.metadata.annotations ?? {};
  if (!source || a['platform.ai/fork-source-uid'] !== source.metadata.uid) return -1;
  return Number(a['platform.ai/fork-source-seq'] ?? -1);
}

// promptOf returns what a task was asked for, without the history that a fork's prompt begins with.
export function promptOf(t: Task): string {
  const prompt = t.spec.prompt ?? t.spec.ai?.prompt ?? '';
  return t.metadata.annotations?.['platform.ai/fork-source-uid'] ? prompt.replace(/^<fork-context [\s\S]*?\n<\/fork-context>\s*/, '') : prompt;
}

// sign is what must be equal for two steps to count as the same: what was said, or which tool was called with how much. Events do
// not keep the arguments of calls. Ids, times and durations differ in any case.
function sign(e: Event): string {
  const c = e.content ?? {};
  return JSON.stringify([e.type, e.toolName, e.contentText, c.argumentBytes, e.contentText ? '' : c.resultLength]);
}

// Pair is a row of a comparison: a step of each run, or of one of them.
export interface Pair {
  a?: Event;
  b?: Event;
  same: boolean;
}

// align puts equal beginnings side by side. After the first difference, each run goes on in its own column.
export function align(a: Event[], b: Event[]): { pairs: Pair[]; first: number } {
  const pairs: Pair[] = [];
  let i = 0;
  for (; i < a.length && i < b.length && sign(a[i] as Event) === sign(b[i] as Event); i++) pairs.push({ a: a[i] as Event, b: b[i] as Event, same: true });
  const first = i;
  for (; i < Math.max(a.length, b.length); i++) {
    pairs.push({ ...(a[i] ? { a: a[i] as Event } : {}), ...(b[i] ? { b: b[i] as Event } : {}), same: false });
  }
  return { pairs, first: first < pairs.length ? first : -1 };
}
