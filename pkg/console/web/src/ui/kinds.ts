// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the types of events have in common, for colours and filters.
import type { Event } from '../api/types';

export type Kind = 'task' | 'model' | 'message' | 'tool' | 'approval' | 'failure' | 'other';

// failures are the types that [ and ] go to.
export const failures = [
  'TaskFailed', 'WorkerFailed', 'ModelRequestFailed', 'ToolCallFailed', 'WorkspacePreparationFailed', 'AgentRuntimeFailed',
  'ArtifactUploadFailed', 'ApprovalDeclined', 'ApprovalExpired',
] as const;

const kinds: Record<string, Kind> = {};
const add = (kind: Kind, ...types: string[]) => {
  for (const t of types) kinds[t] = kind;
};
add('task', 'TaskCreated', 'TaskPhaseChanged', 'TaskJobCreated', 'TaskStarted', 'TaskSucceeded', 'TaskCancelled', 'WorkerStarted', 'WorkerCompleted', 'ResultSubmitted');
add('model', 'ModelRequestStarted', 'ModelRequestCompleted', 'ModelUsageUpdated', 'ModelContextUpdated', 'ContextTruncated');
add('message', 'ModelMessage', 'PlanUpdated', 'TaskMessageReceived', 'TaskMessagesRead');
add('tool', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallJudged');
add('approval', 'ApprovalRequested', 'ApprovalApproved', 'ApprovalCancelled', 'ApprovalExecutionUpdated');
add('failure', ...failures);

export function kindOf(type: string): Kind {
  return kinds[type] ?? 'other';
}

// failed reports whether an event is shown as a failure: by its type, or because who wrote it says so.
export function failed(e: Event): boolean {
  return kindOf(e.type) === 'failure' || e.severity === 'error' || e.severity === 'critical';
}

// filters are the choices above the events, with their types.
export const filters: Record<string, { label: string; types: readonly string[] }> = {
  '': { label: 'All events', types: [] },
  messages: { label: 'Messages', types: ['ModelMessage', 'PlanUpdated', 'TaskMessageReceived'] },
  model: { label: 'Model requests', types: ['ModelRequestStarted', 'ModelRequestCompleted', 'ModelRequestFailed'] },
  tools: { label: 'Tool calls', types: ['ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallJudged'] },
  approvals: { label: 'Approvals', types: ['ApprovalRequested', 'ApprovalApproved', 'ApprovalDeclined', 'ApprovalExpired', 'ApprovalCancelled', 'ApprovalExecutionUpdated'] },
  failures: { label: 'Failures', types: failures },
};
