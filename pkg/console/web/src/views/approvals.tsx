// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Approvals: what waits for a decision, and what was decided.
import { useEffect, useRef } from 'preact/hooks';
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import type { Approval } from '../api/types';
import { useKeys } from '../keys';
import { go, href, location, set } from '../router';
import { ApprovalTable, left, pendingFirst, stateOf } from '../ui/approvaltable';
import { ago } from '../ui/format';
import { Phase } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { Text, oneLine } from '../ui/text';
import { ApprovalDetails } from './approval/details';

export function Approvals({ params }: { params: Record<string, string> }) {
  const { items, loading, error } = useList<Approval>(inNamespace('approvals'), {}, 500);
  const decided = location.value.query.get('state') === 'all';
  const all = [...items.value].sort(pendingFirst);
  const rows = all.filter((a) => decided || stateOf(a) === 'pending' || a.metadata.name === params.name);
  const chosen = all.find((a) => a.metadata.name === params.name);
  const list = useRef<HTMLElement>(null);
  const at = rows.findIndex((a) => a.metadata.name === params.name);
  const query = decided ? { state: 'all' } : {};
  const show = (i: number) => {
    const a = rows[Math.min(rows.length - 1, Math.max(0, i))];
    if (a) go(href(`/approvals/${a.metadata.name}`, query), true);
  };
  useKeys(params.name ? [
    { key: 'j', label: 'Next approval', run: () => show(at + 1) },
    { key: 'k', label: 'Approval before', run: () => show(at - 1) },
    { key: 'Escape', label: 'Back to the list', run: () => go(href('/approvals', query)) },
  ] : []);
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [params.name]);
  return (
    <>
      <div class="title">
        <h1>Approvals</h1>
        <div class="tools">
          <label class="field">Show
            <select value={decided ? 'all' : ''} onChange={(e) => set({ state: e.currentTarget.value })}>
              <option value="">pending</option>
              <option value="all">all</option>
            </select>
          </label>
        </div>
      </div>
      {loading.value && <Loading what="approvals" />}
      {!loading.value && error.value && all.length === 0 ? <Failure error={error.value} /> : <Notice error={error.value} />}
      {!loading.value && !error.value && rows.length === 0 && <Empty>Nothing waits for a decision. {!decided && all.length > 0 && <a href={href('/approvals', { state: 'all' })}>Show what was decided.</a>}</Empty>}
      {rows.length > 0 && !params.name && <ApprovalTable approvals={rows} />}
      {params.name && rows.length > 0 && (
        <div class="chooser">
          <nav ref={list} class="stack" aria-label="Approvals">
            {rows.map((a) => (
              <a key={a.metadata.name} href={href(`/approvals/${a.metadata.name}`, query)} aria-current={a === chosen ? 'page' : undefined}>
                <strong><Text>{oneLine(a.spec.action || a.spec.targetTool || a.metadata.name, 100)}</Text></strong>
                <span class="small muted"><Phase phase={stateOf(a)} /> {[a.spec.taskName, left(a) || (a.status?.decisionTime && ago(a.status.decisionTime))].filter(Boolean).join(' · ')}</span>
              </a>
            ))}
          </nav>
          {chosen ? <ApprovalDetails key={chosen.metadata.name} approval={chosen} all={all} /> : !loading.value && <Empty>This approval is not kept any more, or does not exist.</Empty>}
        </div>
      )}
    </>
  );
}
