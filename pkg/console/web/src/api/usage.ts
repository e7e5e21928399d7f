// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Sums of usage. A figure that nobody reported is null, and stays apart from 0.
import { ApiError, apiVersion, inNamespace, post } from './client';
import type { Other, Totals, UsageReport } from './kinds';

interface Spec {
  by: 'day' | 'model' | 'agent';
  from: string;
  limit?: number;
  until?: string | undefined;
}

// Sums is a report, or several of them added up.
export type Sums = UsageReport['status'] & { parts: number };

const mostParts = 300; // reports that are asked for
const shortest = 1000; // ms

// report asks for a report. Only who may create usagereports gets one.
export async function report(spec: Spec, signal: AbortSignal): Promise<UsageReport['status']> {
  return (await post<UsageReport>(inNamespace('usagereports'), { apiVersion, kind: 'UsageReport', spec }, signal)).status;
}

// sums returns a report. A period with more records than the server adds up at once is halved until it has fewer, and the parts are
// added up; done says how much of the period that was.
export async function sums(spec: Spec, signal: AbortSignal, done: (part: number) => void): Promise<Sums> {
  const begin = Date.parse(spec.from);
  const end = Math.max(spec.until ? Date.parse(spec.until) : Date.now(), begin + shortest);
  const parts: Array<UsageReport['status']> = [];
  let left = mostParts;
  const add = async (from: string, until: string | undefined): Promise<void> => {
    try {
      parts.push(await report({ ...spec, from, until }, signal));
    } catch (e) {
      const [a, b] = [Date.parse(from), until ? Date.parse(until) : end];
      const middle = Math.floor((a + b) / 2 / shortest) * shortest;
      if (!(e instanceof ApiError && e.code === 422) || --left <= 0 || middle <= a || middle >= b) throw e;
      const at = new Date(middle).toISOString();
      await add(from, at);
      done((middle - begin) / (end - begin));
      await add(at, until);
    }
  };
  await add(spec.from, spec.until);
  return merged(parts);
}

// groups returns items by a key of theirs.
export function groups<T>(all: T[], key: (t: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const t of all) {
    const group = found.get(key(t));
    if (group) group.push(t);
    else found.set(key(t), [t]);
  }
  return found;
}

// merged adds up reports on periods that follow each other. A request counts in the period in which it began.
function merged(parts: Array<UsageReport['status']>): Sums {
  const last = parts.at(-1) as UsageReport['status'];
  if (parts.length === 1) return { ...last, parts: 1 };
  const by = <T>(all: T[], key: (t: T) => string) => [...groups(all, key)].sort(([a], [b]) => (a < b ? -1 : 1));
  const breakdown = by(parts.flatMap((p) => p.breakdown ?? []), (r) => r.name).map(([name, rows]) => ({ name, usage: total(rows.map((r) => r.usage)) }));
  const otherWork = by(parts.flatMap((p) => p.otherWork ?? []), (o) => o.category).map(([, all]) => ({ ...(all[0] as Other), usage: total(all.map((o) => o.usage)), taskCount: all.reduce((n, o) => n + o.taskCount, 0) }));
  const works = [...parts].reverse().flatMap((p) => p.works ?? []).slice(0, last.page?.limit);
  const page = last.page && { ...last.page, total: parts.reduce((n, p) => n + (p.page?.total ?? 0), 0) };
  return { ...last, selection: { ...last.selection, from: parts[0]?.selection.from ?? '' }, breakdown, otherWork, works, ...(page ? { page } : {}), parts: parts.length };
}

// periods are the choices of a report, with the number of days before today at which they start; -1 is all that is kept.
export const periods: Record<string, { title: string; days: number }> = {
  '': { title: '30 days', days: 29 },
  '7d': { title: '7 days', days: 6 },
  today: { title: 'Today', days: 0 },
  hour: { title: 'Last hour', days: 0 },
  '90d': { title: '90 days', days: 89 },
  all: { title: 'All that is kept', days: -1 },
  custom: { title: 'From … to …', days: 29 },
};

const day = (t: number) => new Date(t).toISOString().slice(0, 10);
const days = 86_400_000; // ms

// since returns the UTC date, or for the last hour the minute, at which a period starts.
export function since(period: string): string {
  if (period === 'hour') return `${new Date(Date.now() - 3_600_000).toISOString().slice(0, 16)}:00Z`;
  const n = (periods[period] ?? periods[''])?.days ?? 29;
  return n < 0 ? '2000-01-01' : day(Date.now() - n * days);
}

// chosen returns the dates, both included, of a period that somebody chose; what is no date is the last 30 days.
export function chosen(query: URLSearchParams): { from: string; until: string } {
  const date = (key: string, otherwise: string) => (/^\d{4}-\d\d-\d\d$/.test(query.get(key) ?? '') && Date.parse(query.get(key) ?? '') ? (query.get(key) as string) : otherwise);
  return { from: date('from', since('')), until: date('until', day(Date.now())) };
}

// after returns the date after one.
export const after = (date: string) => day(Date.parse(date) + days);

export type Step = 'day' | 'week' | 'month';

// bucket returns the week, by its Monday, or the month of a UTC date.
export function bucket(date: string, step: Step): string {
  if (step === 'month') return date.slice(0, 7);
  return step === 'day' ? date : day(Date.parse(date) - ((new Date(date).getUTCDay() + 6) % 7) * days);
}

// stepsOf returns all days, weeks or months from a report's start to its end, so that one without usage is seen as one: the newest
// 400 of them.
export function stepsOf(from: string, until: string, known: string[], step: Step): string[] {
  const first = known.reduce((a, b) => (b < a ? b : a), known[0] ?? until.slice(0, 10));
  const found = new Set<string>();
  for (let t = Date.parse(from.slice(0, 10) < '2001' ? first : from.slice(0, 10)); t < Date.parse(until) && found.size < 20_000; t += days) found.add(bucket(day(t), step));
  return [...found].slice(-400);
}

const add = (a: number | null, b: number | null) => (a === null ? b : b === null ? a : a + b);

// total adds rows in which each measurement counts once.
export function total(rows: Totals[]): Totals {
  const sum: Totals = {
    inputTokens: null, outputTokens: null, cachedInputTokens: null, cacheWriteInputTokens: null, totalTokens: null,
    measurements: 0, missingMeasurements: 0, calls: 0, attempts: 0, completeness: 'complete',
  };
  const amounts = new Map<string, number>();
  let unpriced = false;
  for (const r of rows) {
    sum.inputTokens = add(sum.inputTokens, r.inputTokens);
    sum.outputTokens = add(sum.outputTokens, r.outputTokens);
    sum.cachedInputTokens = add(sum.cachedInputTokens, r.cachedInputTokens);
    sum.cacheWriteInputTokens = add(sum.cacheWriteInputTokens, r.cacheWriteInputTokens);
    sum.totalTokens = add(sum.totalTokens, r.totalTokens);
    sum.measurements += r.measurements;
    sum.missingMeasurements += r.missingMeasurements;
    sum.calls += r.calls;
    if (r.completeness !== 'complete') sum.completeness = 'partial';
    if (r.cost && r.cost.completeness !== 'complete') unpriced = true;
    for (const a of r.cost?.amounts ?? []) amounts.set(a.currency, (amounts.get(a.currency) ?? 0) + Number(a.amount));
  }
  if (sum.measurements > 0 && sum.totalTokens === null) sum.completeness = 'unavailable';
  const money = [...amounts].map(([currency, amount]) => ({ currency, amount: String(amount) }));
  sum.cost = { completeness: !unpriced ? 'complete' : money.length ? 'partial' : 'unavailable', amounts: money };
  return sum;
}

// cost returns amounts as people read them.
export function cost(t: Totals): string {
  if (t.measurements === 0) return '–';
  const amounts = (t.cost?.amounts ?? []).map((a) => `${Number(a.amount).toLocaleString('en', { maximumFractionDigits: 4, minimumFractionDigits: 2 })} ${a.currency}`);
  if (amounts.length === 0) return 'Unavailable';
  return amounts.join(' + ') + (t.cost?.completeness === 'partial' ? ', in part' : '');
}
