// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The parts of further objects that views read.
import type { Condition, Item } from './types';

export interface Session extends Item {
  spec: { sessionType?: 'task' | 'chat' | 'gateway' };
  status?: {
    activeTask?: string;
    waitingCount?: number;
    messageCount?: number;
    inputTokens?: number;
    outputTokens?: number;
    updatedAt?: string;
  };
}

export interface Message {
  id?: string;
  order?: number;
  role: 'system' | 'user' | 'assistant' | 'tool';
  content?: string;
  name?: string;
  toolCalls?: Array<{ id: string; name: string; arguments?: string }>;
  toolCallID?: string;
  sourceType?: string;
  sourceRef?: string;
  ts?: string;
}

export interface Transcript {
  metadata?: { continue?: string };
  messageCount: number;
  truncated?: boolean;
  items?: Message[];
}

// Totals are figures of usage. Null means that a figure is not known, which is not 0.
export interface Totals {
  inputTokens: number | null;
  outputTokens: number | null;
  cachedInputTokens: number | null;
  cacheWriteInputTokens: number | null;
  totalTokens: number | null;
  measurements: number;
  missingMeasurements: number;
  calls: number;
  attempts: number;
  completeness: 'complete' | 'partial' | 'unavailable';
  cost?: { completeness: 'complete' | 'partial' | 'unavailable'; amounts?: Array<{ currency: string; amount: string }> };
}

export interface UsageTask {
  taskName: string;
  sessionName?: string;
  phase?: string;
  agent?: string;
  role?: string;
  startedAt?: string;
  usage: Totals;
}

export interface Work {
  id: string;
  repository?: string;
  kind?: string;
  number?: number;
  startedAt?: string;
  summary: Totals;
  tasks?: UsageTask[];
  models?: string[];
}

export interface Other {
  category: string;
  explanation: string;
  usage: Totals;
  taskCount: number;
  tasks?: UsageTask[];
}

export interface UsageReport {
  status: {
    selection: { from: string; until: string; asOf: string };
    retainedSince?: string;
    works?: Work[];
    otherWork?: Other[];
    other?: Other;
    work?: Work;
    breakdown?: Array<{ name: string; usage: Totals }>;
    page?: { limit: number; offset: number; total: number };
  };
}

export interface Budget extends Item {
  spec: { window: string; perIdentity?: boolean };
  status?: {
    spent?: number;
    reserved?: number;
    limit?: number;
    cost?: { currency: string; spent: string; reserved: string; limit: string };
    renewsAt?: string;
  };
}

export interface Memory extends Item {
  spec: { content: string; tags?: string[]; sessionName?: string; agentName?: string; taskName?: string; source?: string };
  status?: { disabled?: boolean; deleted?: boolean; recalledCount?: number; lastRecalledAt?: string; origin?: Origin };
}

export interface Origin {
  taskName: string;
  sequence?: number;
  outsideText?: boolean;
}

export interface Proposal extends Item {
  spec: { title: string; type?: string; description?: string; content?: string; patch?: string; agentName?: string; taskName?: string };
  status?: { state?: string; proposedBy?: string; origin?: Origin; reviewer?: string; reviewNote?: string; reviewedAt?: string; memoryName?: string };
}

// Entry is an object of the catalogue: an Agent, Provider, Tool or Skill.
export interface Entry extends Item {
  spec: Record<string, unknown>;
  status?: { ready?: boolean; available?: boolean; phase?: string; message?: string; error?: string; conditions?: Condition[] } & Record<string, unknown>;
}
