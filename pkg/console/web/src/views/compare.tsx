// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Two runs side by side, from their first difference.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, inNamespace } from '../api/client';
import { align, forkedFrom, steps, type Pair, type Steps as Read } from '../api/compare';
import { contents, type Contents } from '../api/contents';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import { useTasks } from '../api/taskquery';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { href, location, set, taskHref } from '../router';
import { count } from '../ui/format';
import { ended } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { TaskTable } from '../ui/tasktable';
import { Text } from '../ui/text';
import { Facts } from './compare/facts';
import { Steps } from './compare/steps';

export function Compare() {
  const query = location.value.query;
  const a = query.get('a') ?? '';
  const b = query.get('b') ?? '';
  return (
    <>
      <div class="title">
        <h1>Compare</h1>
        <form class="tools" key={`${a}/${b}`} onSubmit={choose}>
          <label class="field">Run <input name="a" defaultValue={a} size={24} spellcheck={false} required /></label>
          <label class="field">with <input name="b" defaultValue={b} size={24} spellcheck={false} required /></label>
          <button type="submit">Compare</button>
        </form>
      </div>
      {a && b ? <Both a={a} b={b} /> : a ? <Choice a={a} /> : <Empty>Name two runs. A run and its fork are aligned where the fork began.</Empty>}
    </>
  );
}

function choose(e: SubmitEvent) {
  e.preventDefault();
  const f = new FormData(e.currentTarget as HTMLFormElement);
  set({ a: String(f.get('a') ?? '').trim(), b: String(f.get('b') ?? '').trim() });
}

// Choice offers the newest runs to compare one with. Any other can be named.
function Choice({ a }: { a: string }) {
  const field = () => document.querySelector<HTMLInputElement>('main input[name=b]')?.focus();
  useKeys([{ key: '/', label: 'Name the other run', run: field }]);
  const newest = useTasks({ orderBy: 'created', descending: true, limit: offered + 1 });
  const d = newest.data.value;
  if (!d) return newest.error.value ? <Failure error={newest.error.value} /> : <Loading what="tasks" />;
  const tasks = d.tasks.filter((t) => t.metadata.name !== a).slice(0, offered);
  if (tasks.length === 0) return <Empty>There is no other run in this namespace.</Empty>;
  return <section><h2>With which run?</h2><TaskTable label="Runs to compare with" tasks={tasks} link={(b) => href('/compare', { a, b })} /></section>;
}

const offered = 20; // runs
const every = 3000; // ms between two looks at runs that go on
const fold = 3; // more equal steps than these are hidden at first

const open = (t: Task) => !ended(t.status?.phase);

function Both({ a, b }: { a: string; b: string }) {
  const folded = location.value.query.get('alike') !== 'shown';
  const hidden = useRef({ of: '', rows: 0 }); // steps that are alike; their number changes only when somebody says so
  const going = useSignal(false);
  const read = useRef<{ of: string; a?: Read; b?: Read; said?: [Contents, Contents] | undefined }>({ of: '' });
  const key = `${inNamespace()}/${a}/${b}`;
  const reads = may('get', 'tasks/recording');
  const both = useLoad(reads === undefined ? '' : key, async (signal) => {
    const [ta, tb] = await Promise.all([get<Task>(inNamespace('tasks', a), signal), get<Task>(inNamespace('tasks', b), signal)]);
    // A fork's own events begin after those that it shares with its source.
    const inA = forkedFrom(tb, ta);
    const inB = forkedFrom(ta, tb);
    const of = `${ta.metadata.uid}/${tb.metadata.uid}`;
    const known = read.current.of === of ? read.current : { of };
    const [sa, sb] = await Promise.all([steps(a, Math.max(0, inA), signal, known.a), steps(b, Math.max(0, inB), signal, known.b)]);
    const said = reads ? await Promise.all([contents(a, sa.events, signal, known.said?.[0]), contents(b, sb.events, signal, known.said?.[1])]) : undefined;
    if (!signal.aborted) {
      read.current = { of, a: sa, b: sb, said };
      going.value = open(ta) || open(tb);
    }
    return { ta, tb, inA, inB, ...align(sa.events, sb.events, said), said, cut: sa.cut || sb.cut };
  }, going.value ? every : 0);
  const show = () => document.getElementById('difference')?.scrollIntoView({ block: 'center' });
  useKeys([{ key: 'd', label: 'First difference', run: () => (set({}, 'difference'), show()) }]);
  const d = both.data.value;
  useEffect(() => {
    if (d && location.peek().hash === 'difference') show();
  }, [d === null]);
  if (!d && both.error.value) return <Failure error={both.error.value} retry={both.reload} />;
  if (!d) return <Loading what="both runs" />;
  const same = d.first < 0 ? d.pairs.length : d.first;
  const next = d.pairs[same];
  const left = d.pairs.slice(same);
  const behind = next && ((open(d.ta) && !left.some((p) => p.a)) || (open(d.tb) && !left.some((p) => p.b))); // one run may still do what the other one did
  const first = behind ? -1 : d.first;
  if (hidden.current.of !== key) hidden.current = { of: key, rows: first > fold ? first - 2 : 0 };
  const shared = d.inA >= 0 ? { of: a, fork: b, at: d.inA } : d.inB >= 0 ? { of: b, fork: a, at: d.inB } : null;
  const skip = folded ? hidden.current.rows : 0;
  const turn = () => {
    if (skip === 0) hidden.current.rows = first - 2;
    set({ alike: skip > 0 ? 'shown' : '' });
  };
  return (
    <>
      <Notice error={both.error.value} />
      <Facts a={d.ta} b={d.tb} />
      {shared && <p class="muted"><Text>{shared.fork}</Text> is a fork of <Text>{shared.of}</Text>. Their history is the same up to <a href={taskHref(shared.of, shared.at)}>event {shared.at}</a>; below is what each did after it.</p>}
      <p role="status">
        {said(d.pairs.length, same, next, behind ? (next.a ? b : a) : '')}
        {d.cut && ' Only the first 5,000 steps of a run are compared.'}
        <span class="muted">{basis(d.said)}</span>{' '}
        {(skip > 0 || first > fold) && <button type="button" class="quiet" onClick={turn}>{skip > 0 ? 'Show the steps that are alike' : 'Hide the steps that are alike'}</button>}
      </p>
      <Steps a={a} b={b} pairs={d.pairs} first={first} skip={skip} said={d.said} going={[open(d.ta), open(d.tb)]} />
    </>
  );
}

// basis says by what two steps are alike.
function basis(said: [Contents, Contents] | undefined): string {
  const sizes = 'calls are alike if the tool and the size of the arguments and of the result are';
  if (!said) return ` You may not read what was recorded, so ${sizes}.`;
  const [a, b] = said.map((c) => c.texts.size) as [number, number];
  const unknown = said[0].unknown + said[1].unknown;
  if (unknown === 0) return '';
  if (a === 0 || b === 0) return ` Nothing is recorded of ${a > 0 || b > 0 ? 'one of them' : 'them'}, so ${sizes}.`;
  return ` What ${count(unknown)} of the calls got or returned is not recorded; of these the sizes count.`;
}

// said says how far two runs are alike. next is the first step that is not, and behind the run that has not got there yet.
function said(all: number, same: number, next: Pair | undefined, behind: string) {
  if (all === 0) return 'Neither run has done anything yet.';
  if (!next) return `All ${count(same)} steps are alike.`;
  if (behind) return same > 0 ? <>The first {count(same)} steps are alike; <Text>{behind}</Text> has not gone further yet.</> : <><Text>{behind}</Text> has done nothing yet.</>;
  return same > 1 ? `The first ${count(same)} steps are alike.` : same === 1 ? 'The first step is alike.' : 'They differ from the first step on.';
}
