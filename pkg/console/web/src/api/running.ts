// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What tasks have used so far. The status says so when a task ends; until then the server counts it for its table of tasks.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { inNamespace, query, send } from './client';
import { awake } from './list';
import type { Task, Usage } from './types';

const every = 5000; // ms

interface Table {
  columnDefinitions: Array<{ name: string }>;
  rows: Array<{ cells: unknown[] }>;
}

const counted = signal(new Map<string, Usage>()); // by the name of the task

// usageOf returns what is known of the usage of a task.
export function usageOf(t: Task): Usage | undefined {
  const own = t.status?.usage;
  if (!runs(t) || own?.inputTokens !== undefined || own?.outputTokens !== undefined) return own;
  return counted.value.get(t.metadata.name);
}

const runs = (t: Task) => t.status?.phase === 'Running' && t.spec.type !== 'container';

// useRunning keeps the usage of those of the tasks current that run, while somebody looks.
export function useRunning(tasks: Task[]): void {
  const some = tasks.filter(runs);
  const field = some.length === 1 ? `metadata.name=${some[0]?.metadata.name}` : 'status.phase=Running';
  const on = awake.value && some.length > 0;
  const path = query(inNamespace('tasks'), { fieldSelector: field, limit: 500, includeObject: 'None' });
  useEffect(() => {
    if (!on) return;
    const end = new AbortController();
    const read = async () => {
      try {
        const table = (await (await send(path, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1', signal: end.signal })).json()) as Table;
        counted.value = parse(table);
      } catch {
        // The lists say what is wrong.
      }
    };
    void read();
    const timer = setInterval(() => void read(), every);
    return () => (clearInterval(timer), end.abort());
  }, [on, path]);
}

// parse reads the column that has "IN/OUT", with "+" after it if some requests were not reported, and "?" for what is not known.
function parse(t: Table): Map<string, Usage> {
  const column = (name: string) => t.columnDefinitions.findIndex((c) => c.name === name);
  const [name, tokens] = [column('Name'), column('Tokens')];
  const all = new Map<string, Usage>();
  for (const { cells } of t.rows) {
    const m = /^(\d+|\?)\/(\d+|\?)(\+?)$/.exec(String(cells[tokens]));
    if (!m) continue;
    const usage: Usage = {};
    if (m[1] !== '?') usage.inputTokens = Number(m[1]);
    if (m[2] !== '?') usage.outputTokens = Number(m[2]);
    if (m[3]) usage.unreportedRequests = 1; // at least
    all.set(String(cells[name]), usage);
  }
  return all;
}
