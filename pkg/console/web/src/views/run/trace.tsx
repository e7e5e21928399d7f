// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Where the time of a run went: spans over time, and the path that decided how long it took.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { get, inNamespace, query } from '../../api/client';
import { useLoad } from '../../api/load';
import { firstSpans, type First } from '../../api/spans';
import type { Span, Task, Trace } from '../../api/types';
import { useKeys } from '../../keys';
import { href, location, set } from '../../router';
import { Fact } from '../../ui/eventdetails';
import { count, duration } from '../../ui/format';
import { Empty, Failure, Loading } from '../../ui/states';
import { Table } from '../../ui/table';
import { Text } from '../../ui/text';
import { Waterfall, type Bar } from '../../ui/waterfall';

const most = 10_000; // spans that are read at a time

function bars(t: First & Partial<Trace>): Bar[] {
  const critical = new Set((t.criticalPath ?? []).map((s) => s.id).filter(Boolean));
  const end = Date.now();
  // A fork that is made later does not belong to the time of the run.
  const last = t.terminalEvent?.seq ?? Infinity;
  const of = (kind: Bar['kind'], spans: Span[]): Bar[] => spans.filter((s) => s.startedAt && s.startSeq < last).map((s) => ({
    id: s.id, kind, name: s.name ?? s.model ?? kind, seq: s.startSeq,
    from: Date.parse(s.startedAt ?? ''), to: s.durationMs !== undefined ? Date.parse(s.startedAt ?? '') + s.durationMs : s.endedAt ? Date.parse(s.endedAt) : end,
    failed: s.status === 'failed', running: !s.endedAt, critical: critical.has(s.id),
  }));
  return [...of('model', t.modelRequests), ...of('tool', t.toolCalls), ...of('child', t.childTasks ?? [])].sort((a, b) => a.from - b.from || a.seq - b.seq);
}

export function RunTrace({ name, task }: { name: string; task: Task | undefined }) {
  // Both are asked for at once. The first spans are there while the rest is still read.
  const after = Math.max(0, Math.floor(Number(location.value.query.get('after')) || 0));
  const first = useLoad(`${name}/${after}`, (signal) => firstSpans(name, after, signal));
  const read = (signal: AbortSignal) => get<Trace>(query(inNamespace('tasks', name, 'trace'), { timeline: false, spans: most, after }), signal);
  const goes = useSignal(0); // ms until it is read again, while the run goes on: the longer the trace, the more seldom
  const trace = useLoad(`${name}/${after}/${task?.status?.phase}`, read, goes.value);
  const t = trace.data.value;
  const some = t ?? first.data.value;
  const open = task?.status?.phase === 'Running' && t?.part?.throughSeq === t?.latestSeq;
  const every = open ? 5000 * Math.ceil(((t?.toolCalls.length ?? 0) + 1) / 500) : 0;
  useEffect(() => void (goes.value = every), [every]);
  const all = useMemo(() => (some ? bars(some) : []), [some]);
  const whole = !t?.part || (t.part.afterSeq === 0 && t.part.throughSeq >= t.latestSeq);
  const id = location.value.query.get('span') ?? '';
  const at = all.findIndex((b) => b.id === id);
  const select = (i: number) => all[i] && set({ span: all[i].id });
  useKeys([
    { key: 'j', label: 'Next span', run: () => select(Math.min(all.length - 1, at + 1)) },
    { key: 'k', label: 'Span before', run: () => select(Math.max(0, at - 1)) },
    { key: ']', label: 'Next failure', run: () => select(all.findIndex((b, i) => i > at && b.failed)) },
    { key: '[', label: 'Last failure before', run: () => select(all.findLastIndex((b, i) => (at < 0 || i < at) && b.failed)) },
  ]);
  if (trace.error.value) return <Failure error={trace.error.value} retry={trace.reload} />;
  if (!t && all.length === 0) return <Loading what="the trace" />;
  if (all.length === 0 && whole) return <Empty>This run has made no model request, no tool call and no child task yet.</Empty>;
  const span = at < 0 || !t ? undefined : [...t.modelRequests, ...t.toolCalls, ...t.childTasks].find((s) => s.id === id);
  const later = (t?.childTasks ?? []).filter((c) => c.startSeq > (t?.terminalEvent?.seq ?? Infinity));
  const work = (t?.criticalPath ?? []).filter((s) => s.kind !== 'idle' || s.durationMs > 0);
  return (
    <>
      {t?.part && !whole && <Part part={t.part} latest={t.latestSeq} />}
      {all.length === 0 ? <Empty>No model request, no tool call and no child task began in this part of the run.</Empty> : <Waterfall key={`${name}/${after}`} bars={all} selected={at} onSelect={select} />}
      <p class="legend small">
        <span class="key c-model">model requests</span><span class="key c-tool">tool calls</span><span class="key c-message">child tasks</span><span class="key bad">failed</span>
        <span class="muted">A line below a bar: it is on the critical path.</span>
      </p>
      {later.length > 0 && <p>Forked later: {later.slice(0, 20).map((c, i) => <span key={c.id}>{i > 0 && ', '}<a href={href('/compare', { a: name, b: c.name })}><Text>{c.name}</Text></a></span>)}</p>}
      {span && (
        <section aria-label="Span">
          <h2><Text>{span.name ?? span.model ?? span.id}</Text></h2>
          <dl class="facts">
            <Fact name="State" value={span.status} />
            <Fact name="Duration" value={span.durationMs === undefined ? '' : duration(span.durationMs)} />
            <Fact name="Tokens in" value={span.inputTokens === undefined ? '' : count(span.inputTokens)} />
            <Fact name="Tokens out" value={span.outputTokens === undefined ? '' : count(span.outputTokens)} />
          </dl>
          <p><Text>{span.error || span.summary}</Text></p>
          <p><a href={href(location.value.path, {}, `seq=${span.startSeq}`)}>Its first event, #{span.startSeq}</a></p>
        </section>
      )}
      <section>
        <h2>Critical path</h2>
        {!t ? <Loading what="the rest of the trace" /> : <Table
          label="Critical path"
          rows={work.slice(0, 100)}
          id={(s) => `${s.kind}/${s.id ?? ''}/${s.startedAt ?? ''}`}
          link={(s) => href(location.value.path, {}, s.startSeq ? `seq=${s.startSeq}` : '')}
          columns={[
            { title: 'Step', kind: 'wide', cell: (s) => <Text>{s.name || s.kind}</Text> },
            { title: 'Kind', cell: (s) => s.kind },
            { title: 'Duration', kind: 'number', cell: (s) => duration(s.durationMs) },
          ]}
        />}
        {work.length > 100 && <p class="muted">{count(work.length - 100)} more steps are not shown.</p>}
      </section>
    </>
  );
}

// Part says which part of a long run is shown, and leads to the others. Each is read by itself.
function Part({ part, latest }: { part: { afterSeq: number; throughSeq: number }; latest: number }) {
  const { path } = location.value;
  return (
    <p class="bar" role="status">
      <span>Events {count(part.afterSeq + 1)} to {count(part.throughSeq)} of {count(latest)}</span>
      {part.afterSeq > 0 && <a href={href(path, { tab: 'trace' })}>First part</a>}
      {part.throughSeq < latest && <a href={href(path, { tab: 'trace', after: String(part.throughSeq) })}>Next part</a>}
    </p>
  );
}
