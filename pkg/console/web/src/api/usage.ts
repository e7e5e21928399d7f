// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Sums of usage. A figure that nobody reported is null, and stays apart from 0.
import { apiVersion, inNamespace, post } from './client';
import type { Totals, UsageReport } from './kinds';

// report asks for a report. Only who may create usagereports gets one.
export function report(spec: { by: 'day' | 'model' | 'agent'; from: string; limit?: number }, signal: AbortSignal): Promise<UsageReport> {
  return post<UsageReport>(inNamespace('usagereports'), { apiVersion, kind: 'UsageReport', spec }, signal);
}

// periods are the choices of a report, with the number of days before today at which they start; -1 is all that is kept.
export const periods: Record<string, { title: string; days: number }> = {
  '': { title: '30 days', days: 29 },
  '7d': { title: '7 days', days: 6 },
  today: { title: 'Today', days: 0 },
  hour: { title: 'Last hour', days: 0 },
  '90d': { title: '90 days', days: 89 },
  all: { title: 'All that is kept', days: -1 },
};

// shorter are the periods to go on with when one has more records than a report may add up.
export const shorter = ['7d', 'today', 'hour'];

// since returns the UTC date, or for the last hour the minute, at which a period starts.
export function since(period: string): string {
  if (period === 'hour') return `${new Date(Date.now() - 3_600_000).toISOString().slice(0, 16)}:00Z`;
  const days = (periods[period] ?? periods[''])?.days ?? 29;
  return days < 0 ? '2000-01-01' : new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

// daysOf returns all UTC dates from a report's start to its end, so that a day without usage is seen as one.
export function daysOf(from: string, until: string, known: string[]): string[] {
  const first = known.reduce((a, b) => (b < a ? b : a), known[0] ?? until.slice(0, 10));
  const days: string[] = [];
  for (let t = Date.parse(from.slice(0, 10) < '2001' ? first : from.slice(0, 10)); t <= Date.parse(until) && days.length < 400; t += 86_400_000) {
    days.push(new Date(t).toISOString().slice(0, 10));
  }
  return days;
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
