// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run said and did at an event, which is kept beside the event and read with a permission of its own.
import { ApiError, get, inNamespace } from './client';

export interface Call {
  id: string;
  name: string;
  arguments?: string;
}

export interface Message {
  role: string;
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
  conversation?: Part[];
  tools?: Part;
  message?: Part;
  toolCall?: Call;
}

// recordedTypes are the events beside which something may be recorded.
export const recordedTypes = ['ModelRequestStarted', 'ModelRequestCompleted', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed'];

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
