// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What models were used for, and what budgets have left.
import { ApiError } from '../api/client';
import type { UsageReport } from '../api/kinds';
import { useLoad } from '../api/load';
import { cost, daysOf, periods, report as ask, shorter, since, total } from '../api/usage';
import { location, namespace, set } from '../router';
import { Bars } from '../ui/bars';
import { clock, count, short } from '../ui/format';
import { Empty, Failure, Loading } from '../ui/states';
import { useSteps } from '../ui/steps';
import { Text } from '../ui/text';
import { Budgets } from './usage/budgets';
import { UsageTable, type Line } from './usage/table';
import { Others, Works } from './usage/works';

const by = { '': 'day', model: 'model', agent: 'agent' } as Record<string, 'day' | 'model' | 'agent'>;

export function Usage() {
  const query = location.value.query;
  const period = query.get('period') ?? '';
  const choice = query.get('by') ?? '';
  const report = useLoad(`${namespace()}/${period}/${choice}`, (signal) =>
    ask({ by: by[choice] ?? 'day', from: since(period) }, signal));
  const s = report.data.value?.status;
  const box = useSteps<HTMLDivElement>('row');
  return (
    <div ref={box}>
      <div class="title">
        <h1>Usage</h1>
        <div class="tools">
          <label class="field">Period
            <select value={period} onChange={(e) => set({ period: e.currentTarget.value })}>
              {Object.entries(periods).map(([id, p]) => <option key={id} value={id}>{p.title}</option>)}
            </select>
          </label>
          <label class="field">By
            <select value={choice} onChange={(e) => set({ by: e.currentTarget.value })}>
              {Object.entries(by).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
            </select>
          </label>
        </div>
      </div>
      {report.error.value ? <Failure error={report.error.value} retry={report.reload} /> : !s && <Loading what="the report" />}
      {report.error.value instanceof ApiError && report.error.value.code === 422 && (
        <p class="actions">
          {shorter.slice(shorter.indexOf(period) + 1).map((id) => <button key={id} type="button" onClick={() => set({ period: id })}>{periods[id]?.title}</button>)}
        </p>
      )}
      {s && <Report status={s} by={by[choice] ?? 'day'} />}
      <Budgets />
    </div>
  );
}

function Report({ status, by }: { status: UsageReport['status']; by: 'day' | 'model' | 'agent' }) {
  const rows: Line[] = (status.breakdown ?? []).map((b) => ({ name: b.name || (by === 'agent' ? 'No agent' : 'Not named'), usage: b.usage }));
  const all = total(rows.map((r) => r.usage));
  if (all.measurements === 0) return <Empty>No model was asked in this period.</Empty>;
  const known = new Map(rows.map((r) => [r.name, r.usage]));
  const names = by === 'day' ? daysOf(status.selection.from, status.selection.until, rows.map((r) => r.name)) : rows.map((r) => r.name);
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
        <UsageTable label={`Usage by ${by}`} first={by === 'day' ? 'Day (UTC)' : by === 'model' ? 'Model' : 'Agent'} rows={by === 'day' ? [...rows].reverse() : rows} />
        <p class="muted small">As of {clock(status.selection.asOf)}.{status.retainedSince && <> Usage before <Text>{status.retainedSince}</Text> is no longer kept.</>}</p>
      </section>
      {(status.works?.length ?? 0) > 0 && <Works works={status.works ?? []} total={status.page?.total ?? 0} />}
      <Others others={(status.otherWork ?? []).filter((o) => o.usage.measurements > 0)} />
    </>
  );
}
