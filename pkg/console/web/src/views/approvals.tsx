// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Approvals: what waits for a decision, and what was decided.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { asked } from '../api/approval';
import { ApiError, inNamespace } from '../api/client';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import type { Approval } from '../api/types';
import { useKeys } from '../keys';
import { go, href, location, set } from '../router';
import { ApprovalTable, left as timeLeft, pendingFirst, stateOf } from '../ui/approvaltable';
import { ago, count } from '../ui/format';
import { Phase } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { exactly, oneLine } from '../ui/text';
import { ApprovalDetails } from './approval/details';

const part = 100; // rows that are shown at first
const again = 5000; // in milliseconds; what came of a decision follows it

export function Approvals({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  const decided = location.value.query.get('state') === 'all';
  const pending = useList<Approval>(inNamespace('approvals'), { fieldSelector: 'status.state=pending' }, 0);
  const all = useList<Approval>(decided ? inNamespace('approvals') : '');
  const { loading, error, rest, more } = decided ? all : pending;
  const waits = pending.items.value.some((a) => a.metadata.name === name);
  const one = useLoad(name && `${inNamespace('approvals', name)} ${waits}`, (signal) => asked(name, signal), again, inNamespace('approvals', name));
  const chosen = one.data.value;
  // A list with a limit begins with the oldest, so what waits is added to it, and so is what was chosen.
  const known = new Map([...pending.items.value, ...(decided ? all.items.value : []), ...(chosen ? [chosen.approval] : [])].map((a) => [a.metadata.name, a]));
  const text = location.value.query.get('q') ?? '';
  const said = (a: Approval) => [a.spec.action, a.spec.riskSummary, a.spec.targetTool, a.spec.taskName, a.spec.severity, a.spec.requestedBy, a.metadata.name].join(' ').toLowerCase();
  const rows = [...known.values()].filter((a) => a.metadata.name === name || said(a).includes(text.toLowerCase())).sort(pendingFirst);
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find an approval', run: () => search.current?.focus() }]);
  const list = useRef<HTMLElement>(null);
  const at = rows.findIndex((a) => a.metadata.name === name);
  const query = { state: decided ? 'all' : '', q: text };
  const show = (i: number) => {
    const a = rows[Math.min(rows.length - 1, Math.max(0, i))];
    if (a) go(href(`/approvals/${a.metadata.name}`, query), true);
  };
  useKeys(name ? [
    { key: 'j', label: 'Next approval', run: () => show(at + 1) },
    { key: 'k', label: 'Approval before', run: () => show(at - 1) },
    { key: 'Escape', label: 'Back to the list', run: () => go(href('/approvals', query)) },
  ] : []);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [name, at < 0]);
  const shown = useSignal(part);
  const seen = rows.slice(0, Math.max(shown.value, at + 10));
  const left = rows.length - seen.length;
  const rather = (left > 0 || rest.value !== 0) && (
    <p class="more">
      <button type="button" onClick={() => { shown.value += part; if (left < part && rest.value !== 0) more(); }}>Show more</button>{' '}
      <span class="muted">{rest.value !== 0 ? 'Not all of what was decided is shown: the oldest were read first.' : `${count(left)} are not shown.`}</span>
    </p>
  );
  return (
    <>
      <div class="title">
        <h1>Approvals</h1>
        <div class="tools">
          <input ref={search} type="search" placeholder="Action, tool or task" aria-label="Find an approval" value={text} onInput={(e) => set({ q: e.currentTarget.value })} />
          <label class="field">Show
            <select value={decided ? 'all' : ''} onChange={(e) => set({ state: e.currentTarget.value })}>
              <option value="">pending</option>
              <option value="all">all</option>
            </select>
          </label>
        </div>
      </div>
      {loading.value && rows.length === 0 && <Loading what="approvals" />}
      {!loading.value && error.value && rows.length === 0 ? <Failure error={error.value} /> : <Notice error={error.value} />}
      {!loading.value && !error.value && rows.length === 0 && !name && <Empty>{known.size > 0 ? 'No approval matches what you look for.' : decided ? 'Nobody has asked for anything.' : <>Nothing waits for a decision. <a href={href('/approvals', { state: 'all' })}>Show what was decided.</a></>}</Empty>}
      {rows.length > 0 && !name && <><ApprovalTable approvals={seen} query={query} />{rather}</>}
      {name && (
        <div class="chooser">
          <nav ref={list} class="stack" aria-label="Approvals">
            {seen.map((a) => (
              <a key={a.metadata.name} href={href(`/approvals/${a.metadata.name}`, query)} aria-current={a.metadata.name === name ? 'page' : undefined}>
                <strong><bdi>{oneLine(a.spec.action || a.spec.targetTool || a.metadata.name, 100, exactly)}</bdi></strong>
                <span class="small muted"><Phase phase={stateOf(a)} /> {[a.spec.taskName, timeLeft(a) || (a.status?.decisionTime && ago(a.status.decisionTime))].filter(Boolean).join(' · ')}</span>
              </a>
            ))}
            {rather}
          </nav>
          <Chosen key={name} one={one} />
        </div>
      )}
    </>
  );
}

function Chosen({ one }: { one: ReturnType<typeof useLoad<Awaited<ReturnType<typeof asked>>>> }) {
  const error = one.error.value;
  if (error instanceof ApiError && error.code === 404) return <Empty>This approval is not kept any more, or does not exist.</Empty>;
  if (one.data.value) return <div><Notice error={error} /><ApprovalDetails asked={one.data.value} decided={one.reload} /></div>;
  return error ? <Failure error={error} retry={one.reload} /> : <Loading what="the approval" />;
}
