// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The phase of a task, or the state of another object, as a dot and a word, so that colour is never the only sign.
import type { Condition, Task } from '../api/types';
import { words } from './format';

function isTrue(conditions: Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((c) => c.type === type && c.status === 'True');
}

// phaseOf returns what kubectl shows: what a task waits for, where it waits.
export function phaseOf(t: Task): string {
  const phase = t.status?.phase ?? '';
  const over = ended(phase);
  if (t.metadata.deletionTimestamp && !over) return 'Terminating';
  const waits = isTrue(t.status?.conditions, 'WaitingToStart');
  if (waits?.reason && (phase === '' || phase === 'Running')) return waits.reason;
  if (phase === 'Running' && isTrue(t.status?.conditions, 'WaitingForApproval')) return 'WaitingForApproval';
  return phase || 'Pending';
}

// phases are the groups of tasks that somebody looks for.
export const phases: Record<string, string[]> = {
  active: ['Pending', 'Running', 'Finalizing'],
  waiting: ['WaitingForApproval'],
  succeeded: ['Succeeded'],
  failed: ['Failed'],
  cancelled: ['Cancelled'],
};

export function ended(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed' || phase === 'Cancelled';
}

const tones: Record<string, string> = {
  Running: 'run', running: 'run', Finalizing: 'run',
  Succeeded: 'ok', completed: 'ok', approved: 'ok', succeeded: 'ok',
  Failed: 'bad', failed: 'bad', declined: 'bad',
  WaitingForApproval: 'wait', pending: 'wait',
  // Of monitors and their records.
  Ready: 'ok', Error: 'bad',
  started: 'run', processed: 'run', reviewing: 'run', triaging: 'run', researching: 'run', planning: 'run', implementing: 'run',
  passed: 'ok', open: 'ok', merged: 'ok', merge_ready: 'ok', pr_opened: 'ok', complete: 'ok',
  needs_changes: 'wait', needs_human: 'wait', approval_required: 'wait', retry_pending: 'wait',
  blocked: 'bad', rejected: 'bad', security_sensitive: 'bad',
  // Of gateways and their records.
  Connected: 'ok', NotReady: 'bad', NotConnected: 'bad',
  Dispatching: 'run', TaskCreated: 'run', Sending: 'run', Completed: 'ok', Delivered: 'ok', RetryScheduled: 'wait',
  Rejected: 'bad', DeadLettered: 'bad', Expired: 'bad',
  // Of linked accounts.
  WaitingForConsent: 'wait', Revoked: 'bad', Disconnecting: 'run',
};

export function Phase({ phase }: { phase: string }) {
  return <span class={`phase ${tones[phase] ?? 'idle'}`}>{words(phase)}</span>;
}
