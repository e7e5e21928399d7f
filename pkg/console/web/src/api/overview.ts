// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a stream consists of, in parts, for a bar of all of it.
import { kindOf, type Kind } from '../ui/kinds';

// Mark counts the kinds of events in a part of the stream.
export interface Mark {
  from: number; // sequence numbers
  to: number;
  total: number;
  counts: Partial<Record<Kind, number>>;
}

export interface EventCounts {
  oldestSeq: number;
  latestSeq: number;
  total: number;
  severities: Record<string, number>;
  buckets?: Array<{ seq: number; total: number; types: Record<string, number>; severities: Record<string, number> }>;
}

export interface Overview {
  latest: number;
  marks: Mark[];
}

// overview turns the server's periods into parts by sequence: each ends where the next begins.
export function overview(c: EventCounts): Overview {
  const buckets = (c.buckets ?? []).filter((b) => b.total > 0).sort((a, b) => a.seq - b.seq);
  const marks = buckets.map((b, i): Mark => {
    const counts: Mark['counts'] = {};
    for (const [type, n] of Object.entries(b.types)) counts[kindOf(type)] = (counts[kindOf(type)] ?? 0) + n;
    const errors = (b.severities.error ?? 0) + (b.severities.critical ?? 0);
    if (errors > (counts.failure ?? 0)) counts.failure = errors;
    return { from: b.seq, to: (buckets[i + 1]?.seq ?? c.latestSeq + 1) - 1, total: b.total, counts };
  });
  return { latest: c.latestSeq, marks };
}
