// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tools of a run were called with and what they returned, for comparisons.
import { ApiError } from './client';
import { allRecorded, recorded, type Entry, type Recorded as Row } from './recording';
import { readable } from './source';
import type { Event } from './types';

export interface Contents {
  texts: Map<number, string>; // by the seq of the step
  unknown: number; // steps of which it is not known
  tried: Set<number>;
}

const calls = new Set(['ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed']);
const few = 8; // steps that are read one by one without a look at a conversation
const most = 200; // steps that are read one by one
const atOnce = 6; // requests

// contents reads what is recorded of the calls among the steps of a task. The last request of an attempt has most of it in one
// answer; what is not in it is read by itself. Of known contents it reads only what is new.
export async function contents(task: string, steps: Event[], signal: AbortSignal, known?: Contents): Promise<Contents> {
  const texts = new Map(known?.texts);
  const tried = new Set(known?.tried);
  const wanted = steps.filter((e) => calls.has(e.type));
  const missing = () => wanted.filter((e) => !texts.has(e.seq) && !tried.has(e.seq));
  try {
    const first = missing()[0];
    if (first) {
      const rows = await allRecorded(task, first.seq - 1, signal);
      const attempt = new Map(rows.map((r) => [r.seq, r.attempt ?? 0]));
      const kept = () => missing().filter((e) => attempt.has(e.seq)); // of the others nothing is recorded
      if (kept().length > few) await fromConversations(task, rows, (n) => kept().filter((e) => attempt.get(e.seq) === n), texts, signal);
      const single = kept().slice(0, most);
      await Promise.all(Array.from({ length: atOnce }, async () => {
        for (let e = single.pop(); e; e = single.pop()) {
          const text = textOf(e, await recorded(task, e.seq, signal));
          if (text !== undefined) texts.set(e.seq, text);
        }
      }));
    }
  } catch (e) {
    if (!(e instanceof ApiError && e.code === 403)) throw e;
  }
  for (const e of missing()) tried.add(e.seq);
  return { texts, tried, unknown: wanted.length - wanted.filter((e) => texts.has(e.seq)).length };
}

// textOf returns the arguments of a call that begins, or what it returned.
function textOf(e: Event, entry: Entry | null): string | undefined {
  const m = entry?.message?.omitted ? undefined : entry?.message?.message;
  if (e.type !== 'ToolCallStarted') return m?.role === 'tool' ? readable(m.text ?? '') : undefined;
  return entry?.toolCall ? readable(entry.toolCall.arguments ?? '') : undefined;
}

// fromConversations finds calls and results by the ids of the calls, in the last request of each attempt.
async function fromConversations(task: string, rows: Row[], of: (attempt: number) => Event[], texts: Map<number, string>, signal: AbortSignal): Promise<void> {
  const last = new Map<number, number>(); // the last request of each attempt
  for (const r of rows) if (r.type === 'ModelRequestStarted') last.set(r.attempt ?? 0, r.seq);
  for (const [attempt, seq] of last) {
    const here = of(attempt);
    if (here.length <= few) continue;
    const called = new Map<string, string | null>(); // null: two calls have the id
    const returned = new Map<string, string | null>();
    const put = (to: Map<string, string | null>, id: string | undefined, text: string) => id && to.set(id, to.has(id) ? null : text);
    for (const { message: m, omitted } of (await recorded(task, seq, signal))?.conversation ?? []) {
      if (!m || omitted) continue;
      for (const c of m.toolCalls ?? []) put(called, c.id, c.arguments ?? '');
      if (m.role === 'tool') put(returned, m.toolCallID, m.text ?? '');
    }
    for (const e of here) {
      const text = (e.type === 'ToolCallStarted' ? called : returned).get(e.toolCallID ?? '');
      if (typeof text === 'string') texts.set(e.seq, readable(text));
    }
  }
}
