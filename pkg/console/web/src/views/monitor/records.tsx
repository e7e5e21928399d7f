// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The records of a monitor, or of one of its items, as lists that begin with the newest.
import { useSignal, type Signal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { inNamespace } from '../../api/client';
import { useList } from '../../api/list';
import { targetName, type MonitorCommand, type MonitorMutation, type MonitorRun, type MonitorWork, type Target } from '../../api/monitor';
import type { Item } from '../../api/types';
import { useKeys } from '../../keys';
import { href, location, set, taskHref } from '../../router';
import { ago, count, words } from '../../ui/format';
import { Listed } from '../../ui/listed';
import { webLink } from '../../ui/markdown';
import { Phase } from '../../ui/phase';
import { Table, type Column } from '../../ui/table';
import { Text, oneLine, visible } from '../../ui/text';
import { itemHref, newest } from './about';

// Of selects records: those of a monitor, or those about one pull request or issue.
export type Of = Pick<Target, 'monitorName'> & Partial<Target>;

// selector returns the field selector of records.
export function selector({ monitorName, targetKind, number }: Of): string {
  return [`spec.monitorName=${monitorName}`, ...(targetKind ? [`spec.targetKind=${targetKind}`, `spec.number=${number}`] : [])].join();
}

export const part = 100; // rows that are shown at first

// More shows a part more of the rows.
export function More({ rows, shown }: { rows: number; shown: Signal<number> }) {
  const left = rows - shown.value;
  if (left <= 0) return null;
  return <p class="more"><button type="button" onClick={() => (shown.value += part)}>Show more</button> <span class="muted">{count(left)} are not shown.</span></p>;
}

interface Props<T> {
  of: Of;
  resource: string;
  what: string; // the records, in the plural
  none: string;
  columns: Array<Column<T>>;
  link: (record: T) => string;
  bad: (record: T) => boolean;
  why: (record: T) => string; // what is said under the link
}

function Records<T extends Item>({ of, resource, what, none, columns, link, bad, why }: Props<T>) {
  const list = useList<T>(inNamespace(resource), { fieldSelector: selector(of) }, 0);
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: `Find among ${what}`, run: () => search.current?.focus() }]);
  const text = location.value.query.get('q') ?? '';
  const said = ({ metadata, ...rest }: T) => `${metadata.name} ${JSON.stringify(rest)}`.toLowerCase();
  const rows = list.items.value.filter((r) => !text || said(r).includes(text.toLowerCase())).sort(newest);
  const shown = useSignal(part);
  return (
    <>
      <div class="bar"><input ref={search} type="search" placeholder="Any text" aria-label={`Find among ${what}`} value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      <Listed list={list} what={what} shown={rows.length} none={none} unmatched={`Nothing among the ${what} matches what you look for.`}>
        <Table label={what.charAt(0).toUpperCase() + what.slice(1)} rows={rows.slice(0, shown.value)} columns={columns} id={(r) => r.metadata.uid ?? r.metadata.name} link={link} failed={bad} below={(r) => why(r) && <div class={`about ${bad(r) ? 'bad' : ''}`}><Text>{oneLine(why(r))}</Text></div>} />
        <More rows={rows.length} shown={shown} />
      </Listed>
    </>
  );
}

// because joins the reason and the message of a record.
const because = (s: { reason?: string; message?: string } | undefined) => [words(s?.reason ?? ''), s?.message].filter(Boolean).join(': ');

const about = ({ spec }: { spec: Target }): ComponentChildren => targetName(spec.targetKind, spec.number);
const made = (r: Item) => ago(r.metadata.creationTimestamp);

export function RunRecords({ of }: { of: Of }) {
  const columns: Array<Column<MonitorRun>> = [
    { title: 'Looked at', cell: (r) => targetName(r.spec.targetKind, r.spec.targetNumber), kind: 'wide' },
    { title: 'State', cell: (r) => <Phase phase={r.status?.state ?? 'queued'} /> },
    { title: 'Trigger', cell: (r) => r.spec.trigger },
    { title: 'Pull requests', cell: (r) => count(r.status?.pullRequests ?? 0), kind: 'number minor' },
    { title: 'Issues', cell: (r) => count(r.status?.issues ?? 0), kind: 'number minor' },
    { title: 'Work begun', cell: (r) => count(r.status?.workActions ?? 0), kind: 'number' },
    { title: 'Made', cell: made, kind: 'number' },
  ];
  // A row leads to the work that the run began.
  const link = (r: MonitorRun) => href(`/monitors/${encodeURIComponent(r.spec.monitorName)}`, { tab: 'work', q: r.metadata.name });
  return <Records<MonitorRun> of={of} resource="monitorruns" what="runs" none="The monitor has not looked at its repository within the last 30 days." columns={columns} link={link} bad={(r) => r.status?.state === 'failed'} why={(r) => r.status?.message ?? ''} />;
}

export function CommandRecords({ of }: { of: Of }) {
  const columns: Array<Column<MonitorCommand>> = [
    { title: 'Command', cell: (c) => <>{words(c.spec.intent)}, {about(c)}</>, kind: 'wide' },
    { title: 'State', cell: (c) => <Phase phase={c.status?.state ?? 'accepted'} /> },
    { title: 'Given by', cell: (c) => <Text>{c.spec.sender}</Text> },
    { title: 'By', cell: (c) => (c.spec.source === 'label' ? <>label <Text>{c.spec.label}</Text></> : 'API'), kind: 'minor' },
    { title: 'Given', cell: made, kind: 'number' },
  ];
  return <Records<MonitorCommand> of={of} resource="monitorcommands" what="commands" none="Nobody has given a command within the last 30 days." columns={columns} link={(c) => itemHref(c.spec)} bad={(c) => c.status?.state === 'rejected' || c.status?.state === 'blocked'} why={(c) => because(c.status)} />;
}

export function WorkRecords({ of }: { of: Of }) {
  const columns: Array<Column<MonitorWork>> = [
    { title: 'Work', cell: (w) => <>{words(w.spec.desiredAction)}, {about(w)}</>, kind: 'wide' },
    { title: 'State', cell: (w) => <Phase phase={w.status?.state ?? 'queued'} /> },
    { title: 'Came to', cell: (w) => w.status?.verdict && <Text>{words(w.status.verdict)}</Text>, kind: 'minor' },
    { title: 'Task', cell: (w) => w.status?.taskName && <a href={taskHref(w.status.taskName)}><Text>{w.status.taskName}</Text></a> },
    { title: 'Head', cell: (w) => <code><Text>{w.spec.headSHA?.slice(0, 12)}</Text></code>, kind: 'minor' },
    { title: 'Begun', cell: made, kind: 'number' },
  ];
  return <Records<MonitorWork> of={of} resource="monitorworkactions" what="work" none="No work was begun within the last 30 days." columns={columns} link={(w) => itemHref(w.spec)} bad={(w) => w.status?.state === 'failed' || w.status?.state === 'blocked'} why={(w) => because(w.status)} />;
}

export function MutationRecords({ of }: { of: Of }) {
  const columns: Array<Column<MonitorMutation>> = [
    { title: 'Written', cell: (m) => <>{words(m.spec.operation)}, {about(m)}</>, kind: 'wide' },
    { title: 'State', cell: (m) => <Phase phase={m.status?.state ?? 'started'} /> },
    { title: 'Label', cell: (m) => <Text>{m.spec.label}</Text>, kind: 'minor' },
    { title: 'At the code host', cell: (m) => (m.status?.url ? webLink(visible(m.status.url), words(m.spec.operation)) : <code><Text>{m.status?.sha?.slice(0, 12)}</Text></code>) },
    { title: 'Made', cell: made, kind: 'number' },
  ];
  return <Records<MonitorMutation> of={of} resource="monitormutations" what="mutations" none="Nothing was written on the code host within the last 30 days." columns={columns} link={(m) => itemHref(m.spec)} bad={(m) => m.status?.state === 'failed'} why={(m) => because(m.status)} />;
}
