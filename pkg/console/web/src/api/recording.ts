// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run said and did at an event, which is kept beside the event and read with a permission of its own.
import { ApiError, get, inNamespace, query } from './client';

export interface Call {
  id: string;
  name: string;
  arguments?: string;
}

export interface Message {
  role: string;
  thinking?: string;
  text?: string;
  toolCalls?: Call[];
  toolCallID?: string;
  failed?: boolean;
  images?: { mediaType?: string; digest: string; bytes?: number }[];
}

export interface Part {
  message?: Message;
  tools?: { name: string; description?: string }[];
  digest?: string;
  bytes?: number;
  omitted?: string;
}

export interface Entry {
  seq: number;
  parameters?: Record<string, unknown>;
  conversation?: Part[];
  tools?: Part;
  message?: Part;
  toolCall?: Call;
}

// recordedTypes are the events beside which something may be recorded.
export const recordedTypes = ['ModelRequestStarted', 'ModelRequestCompleted', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed'];

const page = 5000;

// Recorded is an event beside which something is recorded.
export interface Recorded {
  seq: number;
  type: string;
  attempt?: number;
  match?: string; // the words around what was searched for
}

// found returns events after one with which a text came. Where there may be more, continue is the event to go on after.
export function found(task: string, text: string, after: number, signal: AbortSignal): Promise<{ entries: Recorded[]; continue?: number }> {
  return get(query(inNamespace('tasks', task, 'recording'), { q: text, after, limit: 50 }), signal);
}

const mostPages = 20;

// requestTypes are the events of requests to a model and of their answers.
export const requestTypes = ['ModelRequestStarted', 'ModelRequestCompleted'];

// allRecorded returns the events of a task after one beside which something is recorded, of some types or of all: at most 100,000 at a time.
export async function allRecorded(task: string, after: number, signal: AbortSignal, types: string[] = []): Promise<Recorded[]> {
  const all: Recorded[] = [];
  for (let next: number | undefined = after, left = mostPages; next !== undefined && left > 0; left--) {
    const r: { entries: Recorded[]; continue?: number } = await get(query(inNamespace('tasks', task, 'recording'), { after: next, limit: page }) + types.map((t) => `&type=${t}`).join(''), signal);
    all.push(...r.entries);
    next = r.continue || undefined;
  }
  return all;
}

// recorded returns what is recorded beside an event; null if nothing is.
export async function recorded(task: string, seq: number, signal: AbortSignal): Promise<Entry | null> {
  try {
    const r = await get<{ entries: Entry[] }>(inNamespace('tasks', task, 'recording', String(seq)), signal);
    return r.entries[0] ?? null;
  } catch (e) {
    if (e instanceof ApiError && e.code === 404) return null;
    throw e;
  }
}
