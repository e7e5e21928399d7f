// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What models were used for, and what budgets have left.
import { useSignal } from '@preact/signals';
import { useLoad } from '../api/load';
import { after, bucket, chosen, cost, groups, periods, since, stepsOf, sums, total, type Step, type Sums } from '../api/usage';
import { location, namespace, set } from '../router';
import { Bars } from '../ui/bars';
import { clock, count, short } from '../ui/format';
import { Empty, Failure, Loading } from '../ui/states';
import { useSteps } from '../ui/steps';
import { Text } from '../ui/text';
import { Budgets } from './usage/budgets';
import { UsageTable, type Line } from './usage/table';
import { Others, Works } from './usage/works';

type By = Step | 'model' | 'agent';

const by: Record<string, By> = { '': 'day', week: 'week', month: 'month', model: 'model', agent: 'agent' };
const isStep = (b: By): b is Step => b !== 'model' && b !== 'agent';

export function Usage() {
  const query = location.value.query;
  const period = query.get('period') ?? '';
  const choice = by[query.get('by') ?? ''] ?? 'day';
  const what = isStep(choice) ? 'day' : choice; // weeks and months are sums of days
  const dates = period === 'custom' ? chosen(query) : null;
  const backwards = dates !== null && dates.until < dates.from;
  const done = useSignal(0);
  const report = useLoad(backwards ? '' : `${namespace()}/${period}/${what}/${dates?.from}/${dates?.until}`, (signal) => {
    done.value = 0;
    return sums({ by: what, from: dates?.from ?? since(period), ...(dates ? { until: after(dates.until) } : {}) }, signal, (part) => (done.value = part));
  });
  const s = report.data.value;
  const box = useSteps<HTMLDivElement>('row');
  return (
    <div ref={box}>
      <div class="title">
        <h1>Usage</h1>
        <div class="tools">
          <label class="field">Period
            <select value={period} onChange={(e) => set({ period: e.currentTarget.value, from: '', until: '' })}>
              {Object.entries(periods).map(([id, p]) => <option key={id} value={id}>{p.title}</option>)}
            </select>
          </label>
          {dates && <Day name="from" label="From" value={dates.from} />}
          {dates && <Day name="until" label="To" value={dates.until} />}
          <label class="field">By
            <select value={query.get('by') ?? ''} onChange={(e) => set({ by: e.currentTarget.value })}>
              {Object.entries(by).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
            </select>
          </label>
        </div>
      </div>
      {backwards ? <Empty>The period ends before it begins.</Empty> : report.error.value ? <Failure error={report.error.value} retry={report.reload} /> : !s && (
        done.value === 0 ? <Loading what="the report" /> : <p class="state" role="status">The period has more records than the server adds up at once, so it is added up in parts: {Math.floor(done.value * 100)} % …</p>
      )}
      {s && !backwards && <Report status={s} by={choice} />}
      <Budgets />
    </div>
  );
}

function Day({ name, label, value }: { name: 'from' | 'until'; label: string; value: string }) {
  return <label class="field">{label} <input type="date" value={value} title="A day in UTC" onChange={(e) => set({ [name]: e.currentTarget.value })} /></label>;
}

const titles: Record<By, string> = { day: 'Day (UTC)', week: 'Week from (UTC)', month: 'Month (UTC)', model: 'Model', agent: 'Agent' };

function Report({ status, by }: { status: Sums; by: By }) {
  const found = status.breakdown ?? [];
  const rows: Line[] = by === 'week' || by === 'month'
    ? [...groups(found, (b) => bucket(b.name, by))].map(([name, all]) => ({ name, usage: total(all.map((b) => b.usage)) }))
    : found.map((b) => ({ name: b.name || (by === 'agent' ? 'No agent' : 'Not named'), usage: b.usage }));
  const all = total(rows.map((r) => r.usage));
  if (all.measurements === 0) return <Empty>No model was asked in this period.</Empty>;
  const known = new Map(rows.map((r) => [r.name, r.usage]));
  const names = isStep(by) ? stepsOf(status.selection.from, status.selection.until, found.map((b) => b.name), by) : rows.map((r) => r.name);
  return (
    <>
      <div class="cards">
        <div class="card"><b>{all.totalTokens === null ? 'Unavailable' : short(all.totalTokens)}</b><span>tokens{all.completeness === 'partial' ? ', as far as they were reported' : ''}</span></div>
        <div class="card"><b>{all.inputTokens === null ? '–' : short(all.inputTokens)} / {all.outputTokens === null ? '–' : short(all.outputTokens)}</b><span>in / out</span></div>
        <div class="card"><b>{count(all.calls)}</b><span>requests to models</span></div>
        <div class="card"><b>{cost(all)}</b><span>cost by the Providers' prices</span></div>
        {all.missingMeasurements > 0 && <div class="card"><b>{count(all.missingMeasurements)}</b><span>requests of which nothing was reported</span></div>}
      </div>
      <section>
        <Bars label={`Tokens by ${by}`} parts={['in', 'out']} bars={names.map((n) => ({ name: n, low: known.get(n)?.inputTokens ?? 0, high: known.get(n)?.outputTokens ?? 0 }))} />
      </section>
      <section>
        <UsageTable label={`Usage by ${by}`} first={titles[by]} rows={isStep(by) ? [...rows].reverse() : rows} />
        <p class="muted small">As of {clock(status.selection.asOf)}.{status.retainedSince && <> Usage before <Text>{status.retainedSince}</Text> is no longer kept.</>}
          {status.parts > 1 && ` Added up from ${count(status.parts)} reports on parts of the period. A task that was done for requests that began in different parts counts in each.`}
        </p>
      </section>
      {(status.works?.length ?? 0) > 0 && <Works works={status.works ?? []} total={status.page?.total ?? 0} />}
      <Others others={(status.otherWork ?? []).filter((o) => o.usage.measurements > 0)} />
    </>
  );
}
