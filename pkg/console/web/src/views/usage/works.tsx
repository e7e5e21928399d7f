// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Work requests, and usage outside them.
import type { Other, Work } from '../../api/kinds';
import { count, words } from '../../ui/format';
import { UsageTable } from './table';

export function Works({ works, total }: { works: Work[]; total: number }) {
  const rows = works.map((w) => ({ name: `${w.repository ?? ''}#${w.number ?? ''}`, note: (w.models ?? []).join(', '), usage: w.summary }));
  return (
    <section>
      <h2>Work requests</h2>
      <UsageTable label="Work requests" first="Request" rows={rows} />
      {total > works.length && <p class="muted small">The newest {count(works.length)} of {count(total)}.</p>}
    </section>
  );
}

const titles: Record<string, string> = { review_only: 'Reviews alone', other_requests: 'Tasks without an issue', unassociated: 'Without a task' };

export function Others({ others }: { others: Other[] }) {
  if (others.length === 0) return null;
  return (
    <section>
      <h2>By occasion</h2>
      <UsageTable label="Usage outside work requests" first="Category" rows={others.map((o) => ({ name: titles[o.category] ?? words(o.category), note: o.explanation, usage: o.usage }))} />
    </section>
  );
}
