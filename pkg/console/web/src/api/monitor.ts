// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Monitors of repositories and their records, as far as views read them, and the commands that people give. Titles, plans and
// messages were written by anybody.
import type { Condition, Item } from './types';

export interface Monitor extends Item {
  spec: { repoURL: string; branch?: string; schedule?: string; suspend?: boolean };
  status?: {
    phase?: string;
    lastRunTime?: string;
    lastSuccessfulRunTime?: string;
    openPullRequests?: number;
    pendingReviews?: number;
    activeRepairs?: number;
    blockedItems?: number;
    mergeReadyItems?: number;
    openIssues?: number;
    pendingIssueActions?: number;
    blockedIssues?: number;
    conditions?: Condition[];
  };
}

export type TargetKind = 'pull_request' | 'issue';

// Target is what a record is about. An item is always about one pull request or issue.
export interface Target {
  monitorName: string;
  targetKind: TargetKind;
  number: number;
}

export interface Finding {
  path?: string;
  line?: number;
  priority?: string;
  title?: string;
  body?: string;
}

export interface MonitorItem extends Item {
  spec: Target;
  status?: {
    state?: string;
    title?: string;
    url?: string;
    author?: string;
    labels?: string[];
    draft?: boolean;
    headSHA?: string;
    headBranch?: string;
    headRepository?: string;
    baseBranch?: string;
    checks?: string;
    observedAt?: string;
    stopped?: boolean;
    blockedReason?: string;
    message?: string;
    review?: { headSHA?: string; taskName?: string; verdict?: string; summary?: string; findings?: Finding[]; reviewedAt?: string; publishPhase?: string; publishReason?: string; url?: string };
    repair?: { phase?: string; headSHA?: string; taskName?: string; attempts?: number; message?: string };
    automerge?: { state?: string; headSHA?: string; requested?: boolean; reason?: string; mergeSHA?: string };
    issue?: { phase?: string; risk?: string; triage?: string; research?: string; plan?: string; planApprovedBy?: string; attempts?: number; taskName?: string; branch?: string; pullRequest?: number };
  };
}

export interface MonitorRun extends Item {
  spec: { monitorName: string; targetKind?: TargetKind; targetNumber?: number; trigger: string };
  status?: { state?: string; startedAt?: string; completedAt?: string; message?: string; pullRequests?: number; issues?: number; workActions?: number };
}

export interface MonitorCommand extends Item {
  spec: Target & { intent: string; source: string; label?: string; sender?: string };
  status?: { state?: string; reason?: string; message?: string; decidedAt?: string };
}

export interface MonitorWork extends Item {
  spec: Target & { desiredAction: string; headSHA?: string; attempt?: number; run?: string; command?: string };
  status?: { state?: string; reason?: string; message?: string; taskName?: string; verdict?: string; pullRequest?: number; startedAt?: string; completedAt?: string };
}

export interface MonitorMutation extends Item {
  spec: Target & { operation: string; headSHA?: string; label?: string };
  status?: { state?: string; reason?: string; message?: string; url?: string; sha?: string; completedAt?: string };
}

// itemName is the name of the item of a pull request or issue.
export function itemName({ monitorName, targetKind, number }: Target): string {
  return `${monitorName}.${targetKind === 'issue' ? 'issue' : 'pr'}-${number}`;
}

// targetName names a pull request or issue, or all of them.
export function targetName(kind: TargetKind | undefined, number: number | undefined): string {
  return kind ? `${kind === 'issue' ? 'issue' : 'pull request'}${number ? ` #${number}` : 's'}` : 'all';
}

export interface Command {
  intent: string;
  title: string;
  asks?: string; // what is asked before it is given
}

const stop: Command = { intent: 'stop', title: 'Stop', asks: 'Cancel the work in progress, and begin nothing until it is resumed?' };
const resume: Command = { intent: 'resume', title: 'Resume' };

const commands: Record<TargetKind, Command[]> = {
  pull_request: [
    { intent: 'review', title: 'Review' },
    { intent: 'fix', title: 'Fix findings' },
    { intent: 'fix_ci', title: 'Fix checks' },
    { intent: 'update_branch', title: 'Update branch' },
    { intent: 'automerge', title: 'Merge', asks: 'Merge this head as soon as everything permits it?' },
  ],
  issue: [
    { intent: 'triage', title: 'Triage' },
    { intent: 'research', title: 'Research' },
    { intent: 'plan', title: 'Plan' },
    { intent: 'decompose', title: 'Decompose' },
    { intent: 'implement', title: 'Implement', asks: 'Have the issue implemented?' },
  ],
};

// commandsFor returns what can be asked for about an item. The approval of a plan is beside the plan.
export function commandsFor({ spec, status }: MonitorItem): Command[] {
  if (status?.state !== 'open') return [];
  return status.stopped ? [resume] : [...(commands[spec.targetKind] ?? []), stop];
}

// commandRequest returns the fields of a request for a command. Commands about a head name the one that the viewer sees.
export function commandRequest({ spec, status }: MonitorItem, intent: string): Record<string, unknown> {
  const ofHead = spec.targetKind === 'pull_request' && intent !== stop.intent && intent !== resume.intent;
  return { targetKind: spec.targetKind, number: spec.number, intent, ...(ofHead ? { targetSHA: status?.headSHA ?? '' } : {}) };
}

// planWaits reports whether a plan waits for somebody to approve of it.
export function planWaits({ status }: MonitorItem): boolean {
  return status?.state === 'open' && status.issue?.phase === 'approval_required';
}
