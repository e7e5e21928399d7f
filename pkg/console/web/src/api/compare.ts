// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The steps of runs, and how two runs are alike.
import { get, inNamespace } from './client';
import type { Contents } from './contents';
import { diff } from './diff';
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

// sign is what must be equal for two steps to count as the same: what was said, or which tool was called with what. Where that is not
// known, the sizes count. Ids, times and durations differ in any case.
function sign(e: Event, texts: Contents['texts'] | undefined): string {
  const c = e.content ?? {};
  const text = texts?.get(e.seq);
  return JSON.stringify([e.type, e.toolName, e.contentText, ...(text === undefined ? [c.argumentBytes, e.contentText ? '' : c.resultLength] : [text])]);
}

// kind is what must be equal for two steps to be shown side by side.
const kind = (e: Event) => `${e.type} ${e.toolName ?? ''}`;

// Pair is a row of a comparison: a step of each run, or of one of them.
export interface Pair {
  a?: Event;
  b?: Event;
  same: boolean;
}

// align puts equal steps side by side, and between them the steps that did the same kind of thing. Contents count if those of both
// runs are known.
export function align(a: Event[], b: Event[], contents?: [Contents, Contents]): { pairs: Pair[]; first: number } {
  const known = contents?.every((c) => c.texts.size > 0) ? contents : undefined;
  const pairs: Pair[] = [];
  const rows = (as: Event[], bs: Event[], by: (e: Event, side: 0 | 1) => string, each: (run: { kind: string; as: Event[]; bs: Event[] }) => void) => {
    const sides = [as.map((e) => by(e, 0)), bs.map((e) => by(e, 1))] as const;
    for (const r of diff(...sides)) each({ kind: r.kind, as: r.kind === 'ins' ? [] : as.slice(r.a, r.a + r.n), bs: r.kind === 'del' ? [] : bs.slice(r.b, r.b + r.n) });
  };
  const put = (as: Event[], bs: Event[], same: boolean) => {
    for (let i = 0; i < Math.max(as.length, bs.length); i++) pairs.push({ ...(as[i] ? { a: as[i] as Event } : {}), ...(bs[i] ? { b: bs[i] as Event } : {}), same });
  };
  let [as, bs]: [Event[], Event[]] = [[], []]; // what is in one run alone, since the last step that is in both
  const rest = () => {
    rows(as, bs, kind, (r) => put(r.as, r.bs, false));
    [as, bs] = [[], []];
  };
  rows(a, b, (e, side) => sign(e, known?.[side].texts), (r) => {
    if (r.kind === 'same') {
      rest();
      put(r.as, r.bs, true);
    } else {
      as.push(...r.as);
      bs.push(...r.bs);
    }
  });
  rest();
  return { pairs, first: pairs.findIndex((p) => !p.same) };
}
