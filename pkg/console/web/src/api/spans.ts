// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The first spans of a run, from a page of its events. A long trace takes a while to arrive; these fill the view until then.
import { get, inNamespace } from './client';
import type { Event, EventPage, Span } from './types';

const most = 120; // events that are read

const types = ['ModelRequestStarted', 'ModelRequestCompleted', 'ModelRequestFailed', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed'];

export interface First {
  modelRequests: Span[];
  toolCalls: Span[];
}

export async function firstSpans(task: string, after: number, signal: AbortSignal): Promise<First> {
  const q = new URLSearchParams({ after: String(after), limit: String(most) });
  for (const t of types) q.append('type', t);
  const page = await get<EventPage>(`${inNamespace('tasks', task, 'events')}?${q}`, signal);
  return { modelRequests: paired(page.events, 'ModelRequest'), toolCalls: paired(page.events, 'ToolCall') };
}

// paired joins starts and ends: by the id of the call, or else an end to the newest start that is open.
function paired(events: Event[], group: string): Span[] {
  const spans: Span[] = [];
  const open: Array<{ id: string; span: Span }> = [];
  for (const e of events.filter((e) => e.type.startsWith(group))) {
    const id = e.toolCallID ?? String(e.content?.requestID ?? '');
    if (e.type.endsWith('Started')) {
      const span: Span = { id: id || String(e.seq), status: 'running', startSeq: e.seq, startedAt: e.createdAt, name: e.toolName ?? e.model ?? group };
      spans.push(span);
      open.push({ id, span });
      continue;
    }
    const at = open.findLastIndex((o) => o.id === id);
    const span = open.splice(at, at < 0 ? 0 : 1)[0]?.span;
    if (!span) continue;
    span.status = e.type.endsWith('Failed') ? 'failed' : 'completed';
    span.endSeq = e.seq;
    span.endedAt = e.createdAt;
    if (e.summary) span.summary = e.summary;
  }
  return spans;
}
