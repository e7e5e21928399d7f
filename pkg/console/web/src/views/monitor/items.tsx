// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The pull requests and issues that a monitor looks after. Plans that wait for a person are first, then what is blocked.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { inNamespace } from '../../api/client';
import { useList } from '../../api/list';
import { planWaits, targetName, type MonitorItem } from '../../api/monitor';
import { useKeys } from '../../keys';
import { location, set } from '../../router';
import { ago, count, words } from '../../ui/format';
import { Listed } from '../../ui/listed';
import { Phase } from '../../ui/phase';
import { Table, type Column } from '../../ui/table';
import { Text, oneLine } from '../../ui/text';
import { itemHref, stageOf } from './about';
import { More, part, selector, type Of } from './records';

const columns: Array<Column<MonitorItem>> = [
  { title: 'Pull request or issue', kind: 'wide', cell: ({ spec, status }) => <><span class="muted">{targetName(spec.targetKind, spec.number)}</span> <bdi>{oneLine(status?.title ?? '', 140)}</bdi></> },
  { title: 'State', cell: ({ status }) => <Phase phase={status?.state ?? 'unknown'} />, kind: 'minor' },
  { title: 'Stage', cell: (i) => stageOf(i) && <Phase phase={stageOf(i)} /> },
  { title: 'Repair', cell: ({ status }) => status?.repair?.phase && <Phase phase={status.repair.phase} />, kind: 'minor' },
  { title: 'Merge', cell: ({ status }) => status?.automerge?.state && <Phase phase={status.automerge.state} />, kind: 'minor' },
  { title: 'Blocked', cell: ({ status }) => status?.blockedReason && <span class="phase bad"><Text>{words(status.blockedReason)}</Text></span> },
  { title: 'Head', cell: ({ status }) => <code><Text>{status?.headSHA?.slice(0, 12)}</Text></code>, kind: 'minor' },
  { title: 'Seen', cell: ({ status }) => ago(status?.observedAt), kind: 'number minor' },
];

const rank = (i: MonitorItem) => (planWaits(i) ? 0 : i.status?.blockedReason || i.status?.issue?.phase === 'blocked' ? 1 : 2);
const order = (a: MonitorItem, b: MonitorItem) => rank(a) - rank(b) || b.spec.number - a.spec.number || a.spec.targetKind.localeCompare(b.spec.targetKind);

const shows: Record<string, { title: string; fields: string; keep?: (i: MonitorItem) => boolean }> = {
  '': { title: 'open', fields: 'status.state=open' },
  waiting: { title: 'plans that wait', fields: 'status.state=open', keep: planWaits },
  blocked: { title: 'blocked', fields: 'status.state=open', keep: (i) => rank(i) === 1 },
  over: { title: 'closed and merged', fields: 'status.state!=open' },
};

export function Items({ of }: { of: Of }) {
  const query = location.value.query;
  const show = shows[query.get('show') ?? ''] ?? { title: '', fields: '' };
  const list = useList<MonitorItem>(inNamespace('monitoritems'), { fieldSelector: `${selector(of)},${show.fields}` }, 0);
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a pull request or issue', run: () => search.current?.focus() }]);
  const text = query.get('q') ?? '';
  const said = ({ spec, status }: MonitorItem) => [targetName(spec.targetKind, spec.number), status?.title, status?.author, status?.headBranch, status?.headSHA, status?.blockedReason, status?.message, ...(status?.labels ?? [])].join(' ').toLowerCase();
  const rows = list.items.value.filter((i) => (show.keep?.(i) ?? true) && said(i).includes(text.toLowerCase())).sort(order);
  const shown = useSignal(part);
  return (
    <>
      <div class="bar">
        <input ref={search} type="search" placeholder="Title, number, author or label" aria-label="Find a pull request or issue" value={text} onInput={(e) => set({ q: e.currentTarget.value })} />
        <label class="field">Show
          <select value={query.get('show') ?? ''} onChange={(e) => set({ show: e.currentTarget.value })}>{Object.entries(shows).map(([id, s]) => <option key={id} value={id}>{s.title}</option>)}</select>
        </label>
      </div>
      <Listed list={list} what="items" shown={rows.length} none="No pull request or issue of the repository is in this state." unmatched="No pull request or issue matches what you look for.">
        <Table label="Pull requests and issues" rows={rows.slice(0, shown.value)} columns={columns} id={(i) => i.metadata.uid ?? i.metadata.name} link={(i) => itemHref(i.spec)} failed={(i) => rank(i) === 1} below={(i) => <Below item={i} />} />
        <More rows={rows.length} shown={shown} />
      </Listed>
    </>
  );
}

// Below says why an item is blocked, and what a review found.
function Below({ item: { status } }: { item: MonitorItem }) {
  const { review, message } = status ?? {};
  const n = review?.findings?.length ?? 0;
  return (
    <>
      {message && <div class="about bad"><Text>{oneLine(message)}</Text></div>}
      {review?.summary && <div class="about"><Text>{oneLine(`${count(n)} ${n === 1 ? 'finding' : 'findings'}: ${review.summary}`)}</Text></div>}
    </>
  );
}
