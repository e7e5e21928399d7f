// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Tasks that the server sorts and filters, so that the order is that of all tasks and not only of those that were read.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { apiVersion, inNamespace, post } from './client';
import { useLoad, type Loaded } from './load';
import type { Task, Told } from './types';

export interface TaskQuerySpec {
  orderBy: 'created' | 'started' | 'duration' | 'tokens' | 'name';
  descending?: boolean;
  phases?: string[] | undefined;
  text?: string | undefined;
  agent?: string | undefined;
  model?: string | undefined;
  labelSelector?: string | undefined;
  startedAfter?: string | undefined;
  startedBefore?: string | undefined;
  since?: number | undefined; // in milliseconds: tasks that started so long ago at most, in place of startedAfter
  limit?: number; // tasks of a page
}

interface Summary extends Told {
  name: string;
  uid: string;
  type: string;
  phase: string;
  agent?: string;
  model?: string;
  creationTimestamp?: string;
  startTime?: string;
  completionTime?: string;
  inputTokens?: number;
  outputTokens?: number;
  unreportedRequests?: number;
}

interface Answer {
  status: { items: Summary[]; matched: number; continue?: string };
}

export interface Found {
  tasks: Task[];
  matched: number;
}

const pageSize = 200;
const period = 3000; // in milliseconds

// useTasks finds tasks, and finds them again while the page is visible. more adds a page. What was found stays until the next
// answer, so that a row keeps the focus while somebody types.
export function useTasks(spec: TaskQuerySpec | null): Loaded<Found> & { more: () => void } {
  const pages = useSignal(1);
  const of = inNamespace('taskqueries');
  const key = spec ? JSON.stringify(spec) + of : '';
  useEffect(() => {
    pages.value = 1;
  }, [key]);
  const load = useLoad(key, (signal) => find(spec ?? { orderBy: 'created' }, pages.peek(), signal), period, of);
  return { ...load, more: () => { pages.value++; load.reload(); } };
}

async function find({ since, ...asked }: TaskQuerySpec, pages: number, signal: AbortSignal): Promise<Found> {
  const spec = since ? { ...asked, startedAfter: `${new Date(Date.now() - since).toISOString().slice(0, 19)}Z` } : asked; // one for all pages
  const found: Found = { tasks: [], matched: 0 };
  let next: string | undefined;
  do {
    const page: Answer = await post<Answer>(inNamespace('taskqueries'), { apiVersion, kind: 'TaskQuery', spec: { limit: pageSize, ...spec, continue: next } }, signal);
    found.tasks.push(...page.status.items.map(taskOf));
    found.matched = page.status.matched;
    next = page.status.continue;
  } while (next && --pages > 0);
  return found;
}

// taskOf returns a summary in the form of a task, with what lists show of one.
function taskOf(s: Summary): Task {
  return {
    metadata: { name: s.name, uid: s.uid, creationTimestamp: s.creationTimestamp },
    spec: { type: s.type },
    status: {
      phase: s.phase, agentName: s.agent, model: s.model, startTime: s.startTime, completionTime: s.completionTime,
      usage: { inputTokens: s.inputTokens, outputTokens: s.outputTokens, unreportedRequests: s.unreportedRequests },
    },
    summary: { prompt: s.prompt, reason: s.reason, message: s.message, suspend: s.suspend },
  } as Task;
}
