// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One approval, with the arguments as the server wrote them, and what was decided alike.
import { get, inNamespace, query, send } from './client';
import { isPatch } from './patch';
import { members, parsed, type Value } from './source';
import type { Approval, List, Task } from './types';

export interface Asked {
  approval: Approval;
  args: string | undefined; // JSON
}

export async function asked(name: string, signal: AbortSignal): Promise<Asked> {
  const text = await (await send(inNamespace('approvals', name), { signal })).text();
  const spec = members(text)?.find(([member]) => member === 'spec')?.[1] ?? '';
  return { approval: JSON.parse(text) as Approval, args: members(spec)?.find(([member]) => member === 'targetArgsPreview')?.[1] };
}

// kinds are those of the tools that coding agents have of their own.
const kinds = ['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode', 'other'];

// ownKind returns the kind of the tool of a coding agent's own that a call is of; empty for any other call. The tool is named by its
// kind where the agent has no name for it.
export async function ownKind({ spec }: Approval, signal: AbortSignal): Promise<string> {
  const task = await get<Task>(inNamespace('tasks', spec.taskName), signal);
  if (task.spec.type !== 'agent') return '';
  if (kinds.includes(spec.targetTool ?? '')) return spec.targetTool ?? '';
  const { calls } = await get<{ calls: Array<{ callId?: string; attempt?: number; kind?: string }> }>(inNamespace('tasks', spec.taskName, 'calls'), signal);
  return calls.findLast((c) => c.callId === spec.toolCallID && c.attempt === spec.binding?.taskAttempt)?.kind ?? '';
}

// Edit is a part of a file that a call replaces, or a patch, as its arguments say.
export type Edit = { was: string; is: string } | { patch: string };

// editsOf returns what a call would edit, as far as its arguments have it in a form that coding agents use.
export function editsOf(args: string): Edit[] {
  const value = parsed(args);
  return value ? editsIn(value) : [];
}

function editsIn(value: Value): Edit[] {
  if (value.kind === 'list') return value.items.flatMap(editsIn);
  if (value.kind !== 'object') return [];
  const text = (names: RegExp) => value.members.find(([n, v]) => names.test(n) && v.kind === 'text')?.[1] as { text: string } | undefined;
  const [was, is] = [text(/^old_?(str|string|text)$/i), text(/^new_?(str|string|text)$/i)];
  if (was && is) return [{ was: was.text, is: is.text }];
  return value.members.flatMap(([n, v]) => (v.kind !== 'text' ? editsIn(v) : /diff|patch/i.test(n) && isPatch(v.text) ? [{ patch: v.text }] : []));
}

const most = 200; // calls of a tool that are looked at

export interface Alike {
  same: Approval[]; // with the same arguments
  others: Approval[]; // of the same tool
  all: boolean; // whether all others were looked at
}

// alike returns what was decided about the tool of an approval, the newest first.
export async function alike({ metadata, spec }: Approval, signal: AbortSignal): Promise<Alike> {
  const decided = async (limit: number | undefined, fields: Record<string, string | undefined>) => {
    const terms = Object.entries(fields).map(([k, v]) => `${k}=${(v ?? '').replace(/[\\,=]/g, '\\$&')}`);
    const list = await get<List<Approval>>(query(inNamespace('approvals'), { fieldSelector: [...terms, 'status.state!=pending'].join(), limit }), signal);
    const items = list.items.filter((a) => a.metadata.name !== metadata.name);
    return { items: items.sort((a, b) => (b.status?.decisionTime ?? '').localeCompare(a.status?.decisionTime ?? '')), all: !list.metadata.continue };
  };
  const tool = { 'spec.targetTool': spec.targetTool };
  const digest = spec.targetArgsDigest;
  const [same, others] = await Promise.all([
    digest ? decided(undefined, { ...tool, 'spec.targetArgsDigest': digest }) : { items: [] },
    decided(most, tool),
  ]);
  return { same: same.items, others: others.items.filter((a) => !digest || a.spec.targetArgsDigest !== digest), all: others.all };
}
