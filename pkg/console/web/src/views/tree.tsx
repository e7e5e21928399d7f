// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A task and everything that it delegated, with states and tokens.
import { render } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { get, inNamespace } from '../api/client';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { usageOf, useRunning } from '../api/running';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { go, location, set, taskHref } from '../router';
import { count, now, short } from '../ui/format';
import { Phase, phaseOf } from '../ui/phase';
import { Rows, rowHeight, type RowsApi } from '../ui/rows';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { agentOf, started, took } from '../ui/tasktable';
import { Text } from '../ui/text';
import { Graph } from './tree/graph';
import { flatten, type Node } from './tree/nodes';

export function Tree({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  const root = useLoad(name, (signal) => get<Task>(inNamespace('tasks', name), signal));
  const title = <div class="title"><h1>Tree of <Text>{name}</Text></h1></div>;
  if (root.error.value) return <>{title}<Failure error={root.error.value} retry={root.reload} /></>;
  if (!root.data.value) return <>{title}<Loading what="the tree" /></>;
  const t = root.data.value;
  return <Nodes name={t.status?.delegation?.root ?? name} uid={t.status?.delegation?.rootUID ?? t.metadata.uid ?? ''} root={t} />;
}

function Nodes({ name, uid, root }: { name: string; uid: string; root: Task }) {
  const { items, loading, error } = useList<Task>(inNamespace('tasks'), { fieldSelector: `rootTaskUID=${uid}` }, 0);
  const nodes = useMemo(() => flatten(items.value.length > 0 ? items.value : [root]), [items.value, root]);
  useRunning(items.value);
  const at = location.value.query.get('at');
  const selected = useMemo(() => Math.max(0, at ? nodes.findIndex((n) => n.task.metadata.name === at) : 0), [nodes, at]);
  const list = useRef<RowsApi | null>(null);
  const open = (i: number) => void (nodes[i] && go(taskHref(nodes[i].task.metadata.name)));
  const select = (i: number) => {
    const to = Math.min(nodes.length - 1, Math.max(0, i));
    set({ at: nodes[to]?.task.metadata.name });
    list.current?.show(to);
  };
  const graph = location.value.query.get('as') === 'graph';
  const failed = (n: Node) => phaseOf(n.task) === 'Failed';
  useKeys([
    { key: 'v', label: graph ? 'As a list' : 'As a graph', run: () => set({ as: graph ? '' : 'graph', below: '' }) },
    { key: 'j', label: 'Next task', run: () => select(selected + 1) },
    { key: 'k', label: 'Task before', run: () => select(selected - 1) },
    { key: 'Enter', label: 'Open the task', run: () => open(selected) },
    { key: ']', label: 'Next failure', run: () => select(Math.max(selected, nodes.findIndex((n, i) => i > selected && failed(n)))) },
    { key: '[', label: 'Last failure before', run: () => { const i = nodes.findLastIndex((n, i) => i < selected && failed(n)); if (i >= 0) select(i); } },
  ]);
  const from = Math.min(...nodes.map((n) => Date.parse(started(n.task))));
  const to = Math.max(...nodes.map((n) => Date.parse(n.task.status?.completionTime ?? '') || now.value));
  const sum = (key: 'inputTokens' | 'outputTokens') => nodes.reduce((s, n) => s + (usageOf(n.task)?.[key] ?? 0), 0);
  const unknown = nodes.some((n) => !n.task.status?.usage && n.task.spec.type !== 'container') ? ', of what is known' : '';
  return (
    <>
      <div class="title">
        <h1>Tree of <Text>{name}</Text></h1>
        <Phase phase={phaseOf(nodes[0]?.task ?? root)} />
        <span class="muted">{count(nodes.length)} {nodes.length === 1 ? 'task' : 'tasks'}, {short(sum('inputTokens'))} tokens in, {short(sum('outputTokens'))} out{unknown}</span>
        <div class="tools" role="group" aria-label="Form of the tree">
          <button type="button" aria-pressed={!graph} onClick={() => set({ as: '', below: '' })} title="The other form: v">List</button>
          <button type="button" aria-pressed={graph} onClick={() => set({ as: 'graph' })} title="The other form: v">Graph</button>
        </div>
      </div>
      {error.value && items.value.length === 0 ? <Failure error={error.value} /> : <Notice error={error.value} />}
      {loading.value && <Loading what="the tree" />}
      {!loading.value && nodes.length === 1 && <Empty>This task has delegated nothing.</Empty>}
      {graph ? <Graph nodes={nodes} selected={selected} /> : <div class="tree" style={{ height: `min(100vh - 176px, ${nodes.length * rowHeight + 32}px)` }}>
        <div class="heads" aria-hidden="true"><span>Task</span><span>Phase</span><span class="minor">Agent</span><span class="num minor">In</span><span class="num minor">Out</span><span class="num minor">Duration</span><span class="minor">From start to end</span></div>
        <Rows
          label={`Tasks of the tree of ${name}`} total={nodes.length} need={() => undefined} selected={selected} begin={selected} api={list}
          onSelect={open}
          draw={(slot, i) => render(nodes[i] ? <Line node={nodes[i]} from={from} to={to} /> : null, slot)}
          clear={(slot) => render(null, slot)}
        />
      </div>}
    </>
  );
}

function Line({ node, from, to }: { node: Node; from: number; to: number }) {
  const { task, depth } = node;
  const begin = Date.parse(started(task));
  const end = Date.parse(task.status?.completionTime ?? '') || now.value;
  const length = Math.max(1, to - from);
  const phase = phaseOf(task);
  return (
    <>
      <span class="name" style={{ paddingLeft: `${Math.min(depth, 12) * 20}px` }}>{task.metadata.name}</span>
      <Phase phase={phase} />
      <span class="minor">{agentOf(task)}</span>
      <span class="num minor">{short(usageOf(task)?.inputTokens)}</span>
      <span class="num minor">{short(usageOf(task)?.outputTokens)}</span>
      <span class="num minor">{took(task)}</span>
      <span class="span minor"><i class={phase === 'Succeeded' ? 'ok' : phase === 'Failed' ? 'bad' : phase === 'Running' ? 'run' : ''} style={{ left: `${((begin - from) / length) * 100}%`, width: `${((end - begin) / length) * 100}%` }} /></span>
    </>
  );
}
