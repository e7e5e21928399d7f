// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What is said of a monitor and its items in more than one view.
import { itemName, type Monitor, type MonitorItem, type Target } from '../../api/monitor';
import type { Condition } from '../../api/types';
import { href } from '../../router';

export function phaseOf(m: Monitor): string {
  return m.status?.phase || 'Pending';
}

// concerns are the conditions that say what is wrong.
export function concerns(m: Monitor): Condition[] {
  return (m.status?.conditions ?? []).filter((c) => c.message && c.status !== 'True');
}

export function itemHref(target: Target): string {
  return href(`/monitors/${encodeURIComponent(target.monitorName)}/${encodeURIComponent(itemName(target))}`);
}

// stageOf returns what came of the review of a pull request, or where the work on an issue is.
export function stageOf({ status }: MonitorItem): string {
  if (status?.issue) return status.issue.phase ?? '';
  return status?.review ? status.review.verdict || 'reviewing' : '';
}

// newest orders records by when they were made.
export function newest(a: { metadata: { creationTimestamp?: string; name: string } }, b: { metadata: { creationTimestamp?: string; name: string } }): number {
  return (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') || a.metadata.name.localeCompare(b.metadata.name);
}
