// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The parts of the API's objects that views read.

export interface Meta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface Item {
  metadata: Meta;
}

export interface List<T> {
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Usage {
  inputTokens?: number;
  outputTokens?: number;
  cachedInputTokens?: number;
  modelRequests?: number;
  unreportedRequests?: number;
}

export interface Task extends Item {
  spec: {
    type: string;
    prompt?: string;
    agentRef?: { name: string };
    sessionRef?: { name: string; promptIncluded?: boolean };
    ai?: { model?: string; prompt?: string };
    image?: string;
    command?: string[];
    args?: string[];
    schedule?: string;
    suspend?: boolean;
    priority?: number;
    workspace?: { intent?: string; gitRepo?: string; branch?: string; ref?: string; subPath?: string; publicationGitRepo?: string };
  };
  status?: {
    phase?: string;
    message?: string;
    startTime?: string;
    completionTime?: string;
    creationRevision?: number;
    attempts?: number;
    agentName?: string;
    provider?: string;
    model?: string;
    usage?: Usage;
    resultRef?: { available?: boolean };
    delegation?: { parent: string; root: string; rootUID: string; parentUID: string; depth: number };
    hasChildren?: boolean;
    delivery?: Delivery;
    conditions?: Condition[];
  };
  summary?: Told; // in place of what it stands for, of a task that a query found
}

// Delivery is what became of what a run changed in its repository.
export interface Delivery {
  state?: string;
  branch?: string;
  startingSHA?: string;
  remoteBeforeSHA?: string; // empty if there was no branch
  treeSHA?: string;
  expectedCommitSHA?: string;
  verifiedRemoteSHA?: string;
  supersedingRemoteSHA?: string;
  prReceipt?: { id: string; number?: number; url?: string; state?: string; baseBranch?: string };
  message?: string;
}

// Told is what a query tells of a task beside its name and figures.
export interface Told {
  prompt?: string; // its first line, cut
  reason?: string;
  message?: string; // cut
  suspend?: boolean; // absent if it has no effect
}

export interface Event {
  id?: string;
  seq: number;
  type: string;
  severity?: string;
  createdAt: string;
  taskName?: string;
  taskSeq?: number; // its seq in the stream of its task, in a timeline of a session
  agentName?: string;
  toolName?: string;
  toolCallID?: string;
  provider?: string;
  model?: string;
  inputTokens?: number;
  outputTokens?: number;
  summary?: string;
  content?: Record<string, unknown>;
  contentText?: string;
  truncation?: Record<string, unknown>;
}

export interface EventPage {
  afterSeq: number;
  latestSeq: number;
  oldestSeq?: number; // of pages before or around a position
  nextSeq?: number;
  gap?: Gap;
  gaps?: Gap[];
  events: Event[];
}

export interface Gap {
  fromSeq: number;
  toSeq: number;
  reason: string;
}

export interface Approval extends Item {
  spec: {
    taskName: string;
    taskUID?: string;
    rootTask?: string;
    requestedBy?: string;
    action?: string;
    riskSummary?: string;
    severity?: string;
    targetTool?: string;
    toolCallID?: string;
    targetArgsDigest?: string;
    targetSpecDigest?: string;
    targetArgsPreview?: unknown;
    timeout?: string;
    expiresAt?: string;
    binding?: Record<string, unknown>;
  };
  status?: {
    state?: string;
    argumentsExact?: boolean; // whether targetArgsPreview is all of the arguments
    requestedSeq?: number;
    decisionSeq?: number;
    decisionTime?: string;
    decisionReason?: string;
    decisionActor?: string;
    executionOutcome?: string;
    executionReason?: string;
  };
}

export interface Span {
  id: string;
  status: string;
  startSeq: number;
  endSeq?: number;
  startedAt?: string;
  endedAt?: string;
  durationMs?: number;
  summary?: string;
  error?: string;
  name?: string; // of tools and children
  model?: string; // of requests
  kind?: string;
  inputTokens?: number;
  outputTokens?: number;
}

export interface Trace {
  terminalEvent?: { seq: number };
  metadata?: { continue?: string };
  latestSeq: number;
  part?: { afterSeq: number; throughSeq: number };
  gap?: Gap;
  modelRequests: Span[];
  toolCalls: Span[];
  childTasks: Span[];
  errors: Array<{ seq: number; type: string; severity?: string; message?: string }>;
  criticalPath: Array<{ kind: string; id?: string; name?: string; startedAt?: string; startSeq?: number; endSeq?: number; durationMs: number }>;
  usage?: Usage;
}
