// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Which tasks are looked for. All of it is in the address, and the server selects.
import type { RefObject } from 'preact';
import type { TaskQuerySpec } from '../../api/taskquery';
import type { Task } from '../../api/types';
import { location, set } from '../../router';
import { phases } from '../../ui/phase';
import { agentOf } from '../../ui/tasktable';

const hour = 3_600_000;
const periods: Record<string, { title: string; ms?: number }> = {
  '': { title: 'any time' },
  '1h': { title: 'last hour', ms: hour },
  '24h': { title: 'last 24 hours', ms: 24 * hour },
  '7d': { title: 'last 7 days', ms: 7 * 24 * hour },
  '30d': { title: 'last 30 days', ms: 30 * 24 * hour },
  dates: { title: 'between days' },
};

const orders: Record<string, TaskQuerySpec> = {
  '': { orderBy: 'created', descending: true },
  started: { orderBy: 'started', descending: true },
  duration: { orderBy: 'duration', descending: true },
  tokens: { orderBy: 'tokens', descending: true },
  name: { orderBy: 'name' },
};

const names = ['q', 'phase', 'agent', 'model', 'started', 'from', 'to', 'labels'];

// filtered reports whether the address selects some of the tasks.
export function filtered(): boolean {
  return names.some((n) => location.value.query.get(n));
}

const date = /^\d{4}-\d\d-\d\d$/;

// after returns the day after a date, before which what began on it began.
function after(day: string): string {
  const next = new Date(Date.parse(day) + 24 * hour);
  return Number.isNaN(next.getTime()) ? '' : next.toISOString().slice(0, 10);
}

// wanted returns the query that the address stands for.
export function wanted(): TaskQuerySpec {
  const get = (name: string) => location.value.query.get(name)?.trim() || undefined;
  const day = (name: string) => (get('started') === 'dates' && date.test(get(name) ?? '') ? (get(name) ?? '') : '');
  return {
    ...(orders[get('sort') ?? ''] ?? { orderBy: 'created', descending: true }),
    phases: phases[get('phase') ?? ''], text: get('q'), agent: get('agent'), model: get('model'), labelSelector: get('labels'),
    since: periods[get('started') ?? '']?.ms, startedAfter: day('from') || undefined, startedBefore: (day('to') && after(day('to'))) || undefined,
  };
}

// Filters has a field for each way to select tasks. tasks are those that are shown: their agents and models are suggested.
export function Filters({ tasks, search }: { tasks: Task[]; search: RefObject<HTMLInputElement | null> }) {
  const query = location.value.query;
  const get = (name: string) => query.get(name) ?? '';
  const some = (of: (t: Task) => string | undefined) => [...new Set(tasks.map(of))].filter(Boolean).sort().slice(0, 50);
  return (
    <form class="filters" role="search" aria-label="Tasks" onSubmit={(e) => (e.preventDefault(), (document.activeElement as HTMLElement | null)?.blur())}>
      <input ref={search} type="search" placeholder="Name, agent or prompt" aria-label="Find a task by its name, agent or prompt" maxLength={256} value={get('q')} onInput={(e) => set({ q: e.currentTarget.value })} />
      <Choice name="phase" title="Phase" options={[['', 'all'], ...Object.keys(phases).map((p): [string, string] => [p, p])]} />
      <Named name="agent" title="Agent" known={some(agentOf)} />
      <Named name="model" title="Model" known={some((t) => t.status?.model)} />
      <Choice name="started" title="Started" options={Object.entries(periods).map(([id, p]) => [id, p.title])} />
      {get('started') === 'dates' && (
        <>
          <label class="field">From <input type="date" value={get('from')} onChange={(e) => set({ from: e.currentTarget.value })} /></label>
          <label class="field">to <input type="date" value={get('to')} onChange={(e) => set({ to: e.currentTarget.value })} /> UTC</label>
        </>
      )}
      <Named name="labels" title="Labels" placeholder="team=web" />
      <Choice name="sort" title="Sort by" options={Object.keys(orders).map((o) => [o, o || 'created'])} />
      {filtered() && <button type="button" class="quiet" onClick={() => set(Object.fromEntries(names.map((n) => [n, ''])))}>Show all</button>}
    </form>
  );
}

function Choice({ name, title, options }: { name: string; title: string; options: Array<[id: string, title: string]> }) {
  return (
    <label class="field">{title}
      <select value={location.value.query.get(name) ?? ''} onChange={(e) => set({ [name]: e.currentTarget.value })}>
        {options.map(([id, text]) => <option key={id} value={id}>{text}</option>)}
      </select>
    </label>
  );
}

// Named is a field that counts when it is left, because the server compares the whole of it.
function Named({ name, title, known, placeholder }: { name: string; title: string; known?: Array<string | undefined>; placeholder?: string }) {
  const value = location.value.query.get(name) ?? '';
  return (
    <label class="field">{title}
      <input key={value} defaultValue={value} list={known && `known-${name}`} placeholder={placeholder ?? 'all'} size={placeholder ? 14 : 8} maxLength={1000} spellcheck={false} autocomplete="off" onChange={(e) => set({ [name]: e.currentTarget.value.trim() })} />
      {known && <datalist id={`known-${name}`}>{known.map((k) => <option key={k} value={k} />)}</datalist>}
    </label>
  );
}
