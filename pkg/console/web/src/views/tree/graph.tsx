// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The tree as a graph: parents on the left of their children. The lines are drawn, and tasks are links in the order of the list, so a
// keyboard and a screen reader find the same as a pointer.
import { useMemo, useRef } from 'preact/hooks';
import { useKeys } from '../../keys';
import { location, set, taskHref } from '../../router';
import { count } from '../../ui/format';
import { Phase, phaseOf } from '../../ui/phase';
import { agentOf, took } from '../../ui/tasktable';
import { Text } from '../../ui/text';
import type { Node } from './nodes';

const most = 150; // tasks that are drawn, those next to the root first
const [wide, high] = [208, 72]; // of a task, in px
const [right, down] = [wide + 56, high + 12]; // from a task to its child, and to the next one

interface Place {
  at: number; // the index of the task
  x: number;
  y: number;
  children: Place[];
  left: number; // children that are not drawn
}

// layout places the tasks below some, and returns them in the order of the list.
function layout(nodes: Node[], roots: number[]): Place[] {
  const children = new Map<number, number[]>();
  for (const [i, n] of nodes.entries()) {
    const siblings = children.get(n.parent);
    if (siblings) siblings.push(i);
    else children.set(n.parent, [i]);
  }
  const chosen = new Set<number>();
  for (let level = roots; level.length > 0 && chosen.size < most; level = level.flatMap((i) => children.get(i) ?? [])) {
    for (const i of level.slice(0, most - chosen.size)) chosen.add(i);
    level = level.filter((i) => chosen.has(i));
  }
  const all: Place[] = [];
  let row = 0;
  const put = (i: number, depth: number): Place => {
    const place: Place = { at: i, x: depth * right, y: 0, children: [], left: 0 };
    all.push(place);
    const below = children.get(i) ?? [];
    place.children = below.filter((c) => chosen.has(c)).map((c) => put(c, depth + 1));
    place.left = below.length - place.children.length;
    const [first, last] = [place.children[0], place.children.at(-1)];
    place.y = first && last ? (first.y + last.y) / 2 : row++ * down;
    return place;
  };
  for (const i of roots) if (chosen.has(i)) put(i, 0);
  return all;
}

export function Graph({ nodes, selected }: { nodes: Node[]; selected: number }) {
  const below = location.value.query.get('below') ?? '';
  const from = below ? nodes.findIndex((n) => n.task.metadata.name === below) : -1;
  const places = useMemo(() => layout(nodes, from >= 0 ? [from] : nodes.flatMap((n, i) => (n.parent < 0 ? [i] : []))), [nodes, from]);
  const box = useRef<HTMLUListElement>(null);
  const links = () => [...(box.current?.querySelectorAll<HTMLAnchorElement>('a.node') ?? [])];
  // go moves from the task that has the focus, or is selected.
  const go = (to: (p: Place, i: number) => Place | undefined) => {
    const focused = places[links().indexOf(document.activeElement as HTMLAnchorElement)];
    const p = focused ?? places.find((p) => p.at === selected) ?? places[0];
    if (!p) return;
    const next = to(p, places.indexOf(p));
    const i = places.indexOf(next ?? p);
    links()[i]?.focus();
    set({ at: nodes[(next ?? p).at]?.task.metadata.name });
  };
  const failed = (p: Place) => phaseOf(nodes[p.at]?.task ?? { metadata: { name: '' }, spec: { type: '' } }) === 'Failed';
  const beside = (p: Place, by: 1 | -1) => places.filter((q) => q.x === p.x && (q.y - p.y) * by > 0).sort((a, b) => (a.y - b.y) * by)[0];
  useKeys([
    { key: 'j', label: 'Next task', run: () => go((_, i) => places[i + 1]) },
    { key: 'k', label: 'Task before', run: () => go((_, i) => places[i - 1]) },
    { key: 'ArrowRight', label: 'First child', run: () => go((p) => p.children[0]) },
    { key: 'ArrowLeft', label: 'Parent', run: () => go((p) => places.find((q) => q.children.includes(p))) },
    { key: 'ArrowDown', label: 'Task below', run: () => go((p) => beside(p, 1)) },
    { key: 'ArrowUp', label: 'Task above', run: () => go((p) => beside(p, -1)) },
    { key: ']', label: 'Next failure', run: () => go((_, i) => places.find((p, n) => n > i && failed(p))) },
    { key: '[', label: 'Last failure before', run: () => go((_, i) => places.findLast((p, n) => n < i && failed(p))) },
  ]);
  const width = Math.max(...places.map((p) => p.x)) + wide + 72;
  const height = Math.max(...places.map((p) => p.y)) + high;
  const lines = places.flatMap((p) => p.children.map((c) => `M${p.x + wide} ${p.y + high / 2}C${p.x + right - 28} ${p.y + high / 2} ${p.x + right - 28} ${c.y + high / 2} ${c.x} ${c.y + high / 2}`)).join('');
  return (
    <>
      {from >= 0 && <p>Below <Text>{below}</Text>. <button type="button" onClick={() => set({ below: '' })}>Show the whole tree</button></p>}
      {from < 0 && places.length < nodes.length && <p role="status">{count(places.length)} of {count(nodes.length)} tasks are drawn, those next to the root first. The list has all of them.</p>}
      <div class="graph" tabIndex={0} role="group" aria-label="The tree as a graph; the list has the same tasks">
        <svg width={width} height={height} aria-hidden="true"><path d={lines} /></svg>
        <ul ref={box}>
          {places.map((p) => {
            const task = nodes[p.at]?.task;
            if (!task) return null;
            const phase = phaseOf(task);
            return (
              <li key={task.metadata.uid} style={{ left: `${p.x}px`, top: `${p.y}px` }}>
                <a class={`node ${phase === 'Failed' ? 'failed' : ''}`} href={taskHref(task.metadata.name)} aria-current={p.at === selected ? 'true' : undefined} style={{ width: `${wide}px`, height: `${high}px` }}>
                  <b><Text>{task.metadata.name}</Text></b>
                  <span><Phase phase={phase} /> <span class="muted">{task.status?.startTime && took(task)}</span></span>
                  <span class="muted"><Text>{agentOf(task) || task.spec.type}</Text></span>
                </a>
                {p.left > 0 && <button type="button" class="quiet small" aria-label={`Draw the tasks below ${task.metadata.name}, ${p.left} more`} onClick={() => set({ below: task.metadata.name, at: task.metadata.name })}>+{count(p.left)}</button>}
              </li>
            );
          })}
        </ul>
      </div>
    </>
  );
}
