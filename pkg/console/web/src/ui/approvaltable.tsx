// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Approvals as rows.
import type { Approval } from '../api/types';
import { href, type Params } from '../router';
import { ago, duration, now } from './format';
import { Phase } from './phase';
import { Table, type Column } from './table';
import { Text, exactly, oneLine } from './text';

export function stateOf(a: Approval): string {
  return a.status?.state ?? 'pending';
}

// left returns how long somebody may still decide, in words.
export function left(a: Approval): string {
  if (stateOf(a) !== 'pending' || !a.spec.expiresAt) return '';
  const ms = Date.parse(a.spec.expiresAt) - now.value;
  return ms > 0 ? `${duration(Math.floor(ms / 1000) * 1000)} left` : 'expired';
}

// pendingFirst orders by what has to be decided first, then by what was decided last.
export function pendingFirst(a: Approval, b: Approval): number {
  const pending = Number(stateOf(b) === 'pending') - Number(stateOf(a) === 'pending');
  if (pending) return pending;
  if (stateOf(a) === 'pending') return (a.spec.expiresAt ?? '~').localeCompare(b.spec.expiresAt ?? '~') || a.metadata.name.localeCompare(b.metadata.name);
  return (b.status?.decisionTime ?? '').localeCompare(a.status?.decisionTime ?? '');
}

const columns: Array<Column<Approval>> = [
  { title: 'Action', kind: 'wide', cell: (a) => <bdi>{oneLine(a.spec.action || a.spec.targetTool || a.metadata.name, 140, exactly)}</bdi> },
  { title: 'State', cell: (a) => <Phase phase={stateOf(a)} /> },
  { title: 'Tool', cell: (a) => <Text>{a.spec.targetTool}</Text>, kind: 'minor' },
  { title: 'Task', cell: (a) => a.spec.taskName, kind: 'minor' },
  { title: 'Severity', cell: (a) => a.spec.severity ?? '', kind: 'minor' },
  { title: 'Time', kind: 'number', cell: (a) => left(a) || ago(a.status?.decisionTime ?? a.metadata.creationTimestamp) },
];

export function ApprovalTable({ approvals, query = {} }: { approvals: Approval[]; query?: Params }) {
  return <Table label="Approvals" rows={approvals} columns={approvals.some((a) => a.spec.severity) ? columns : columns.filter((c) => c.title !== 'Severity')} id={(a) => a.metadata.name} link={(a) => href(`/approvals/${a.metadata.name}`, query)} />;
}
