// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One approval, with the arguments as the server wrote them, and what was decided alike.
import { get, inNamespace, query, send } from './client';
import { members } from './source';
import type { Approval, List } from './types';

export interface Asked {
  approval: Approval;
  args: string | undefined; // JSON
}

export async function asked(name: string, signal: AbortSignal): Promise<Asked> {
  const text = await (await send(inNamespace('approvals', name), { signal })).text();
  const spec = members(text)?.find(([member]) => member === 'spec')?.[1] ?? '';
  return { approval: JSON.parse(text) as Approval, args: members(spec)?.find(([member]) => member === 'targetArgsPreview')?.[1] };
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
