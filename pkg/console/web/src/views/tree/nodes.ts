// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The order of the tasks of a tree.
import type { Task } from '../../api/types';
import { byStart } from '../../ui/tasktable';

export interface Node {
  task: Task;
  depth: number;
  parent: number; // its index; -1 for none
}

// flatten orders tasks as a tree: each before its children, and siblings by their start.
export function flatten(tasks: Task[]): Node[] {
  const known = new Set(tasks.map((t) => t.metadata.uid));
  const children = new Map<string, Task[]>();
  for (const t of tasks) {
    const parent = t.status?.delegation?.parentUID ?? '';
    const key = known.has(parent) ? parent : ''; // a parent that was deleted leaves its children at the top
    const siblings = children.get(key);
    if (siblings) siblings.push(t);
    else children.set(key, [t]);
  }
  const out: Node[] = [];
  const seen = new Set<Task>();
  const add = (key: string, depth: number, parent: number) => {
    for (const task of (children.get(key) ?? []).sort(byStart)) {
      if (seen.has(task)) continue;
      seen.add(task);
      out.push({ task, depth, parent });
      if (task.metadata.uid) add(task.metadata.uid, depth + 1, out.length - 1);
    }
  };
  add('', 0, -1);
  return out;
}
