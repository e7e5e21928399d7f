// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Two runs side by side, from their first difference.
import { useSignal } from '@preact/signals';
import { get, inNamespace } from '../api/client';
import { align, forkedFrom, steps } from '../api/compare';
import { useLoad } from '../api/load';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { location, set, taskHref } from '../router';
import { count } from '../ui/format';
import { Empty, Failure, Loading } from '../ui/states';
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
      {a && b ? <Both a={a} b={b} /> : <Empty>Name two runs. A run and its fork are aligned where the fork began.</Empty>}
    </>
  );
}

function choose(e: SubmitEvent) {
  e.preventDefault();
  const f = new FormData(e.currentTarget as HTMLFormElement);
  set({ a: String(f.get('a') ?? '').trim(), b: String(f.get('b') ?? '').trim() });
}

function Both({ a, b }: { a: string; b: string }) {
  const folded = useSignal(true);
  const both = useLoad(`${inNamespace()}/${a}/${b}`, async (signal) => {
    const [ta, tb] = await Promise.all([a, b].map((n) => get<Task>(inNamespace('tasks', n), signal)));
    // A fork's own events begin after those that it shares with its source.
    const inA = forkedFrom(tb, ta);
    const inB = forkedFrom(ta, tb);
    const [sa, sb] = await Promise.all([steps(a, Math.max(0, inA), signal), steps(b, Math.max(0, inB), signal)]);
    return { ta, tb, inA, inB, ...align(sa.events, sb.events), cut: sa.cut || sb.cut };
  });
  useKeys([{ key: 'd', label: 'First difference', run: () => document.getElementById('difference')?.scrollIntoView({ block: 'center' }) }]);
  if (both.error.value) return <Failure error={both.error.value} retry={both.reload} />;
  const d = both.data.value;
  if (!d?.ta || !d.tb) return <Loading what="both runs" />;
  const same = d.first < 0 ? d.pairs.length : d.first;
  const shared = d.inA >= 0 ? { of: a, fork: b, at: d.inA } : d.inB >= 0 ? { of: b, fork: a, at: d.inB } : null;
  return (
    <>
      <Facts a={d.ta} b={d.tb} />
      {shared && <p class="muted"><Text>{shared.fork}</Text> is a fork of <Text>{shared.of}</Text>. Their history is the same up to <a href={taskHref(shared.of, shared.at)}>event {shared.at}</a>; below is what each did after it.</p>}
      <p role="status">
        {d.pairs.length === 0 ? 'Neither run has done anything yet.' : d.first < 0 ? `All ${count(same)} steps are alike.` : same > 0 ? `The first ${count(same)} steps are alike.` : 'They differ from the first step on.'}
        {d.cut && ' Only the first 5,000 steps of a run are compared.'}
        {same > 0 && <span class="muted"> Calls are alike if the tool and the size of the arguments and of the answer are, because events keep neither.</span>}{' '}
        {same > 3 && d.first >= 0 && <button type="button" class="quiet" onClick={() => (folded.value = !folded.value)}>{folded.value ? 'Show the steps that are alike' : 'Hide the steps that are alike'}</button>}
      </p>
      <Steps a={a} b={b} pairs={d.pairs} first={d.first} skip={folded.value && d.first > 3 ? d.first - 2 : 0} />
    </>
  );
}
