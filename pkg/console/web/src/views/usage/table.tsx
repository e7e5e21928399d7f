// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Rows of usage.
import type { ComponentChildren } from 'preact';
import type { Totals } from '../../api/kinds';
import { cost } from '../../api/usage';
import { count } from '../../ui/format';
import { Text } from '../../ui/text';

export interface Line {
  name: string;
  link?: ComponentChildren; // in place of the name
  note?: string;
  usage: Totals;
}

// figure tells apart what was not reported, 0, and that there was nothing to report.
function figure(n: number | null, t: Totals): string {
  if (t.measurements === 0) return '–';
  return n === null ? 'Unavailable' : count(n);
}

export function UsageTable({ label, first, rows }: { label: string; first: string; rows: Line[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label={label}>
      <table aria-label={label}>
        <thead>
          <tr><th class="wide" scope="col">{first}</th><th class="number" scope="col">In</th><th class="number" scope="col">Out</th><th class="number minor" scope="col">From caches</th><th class="number minor" scope="col">Into caches</th><th class="number" scope="col">Requests</th><th class="number" scope="col">Cost</th></tr>
        </thead>
        <tbody>
          {rows.map(({ name, link, note, usage: u }) => (
            <tr key={name} data-step tabIndex={-1}>
              <td class="wide">{link ?? <Text>{name}</Text>}{note && <div class="muted small"><Text>{note}</Text></div>}</td>
              <td class="number">{figure(u.inputTokens, u)}</td>
              <td class="number">{figure(u.outputTokens, u)}</td>
              <td class="number minor">{figure(u.cachedInputTokens, u)}</td>
              <td class="number minor">{figure(u.cacheWriteInputTokens, u)}</td>
              <td class="number">{count(u.calls)}</td>
              <td class="number">{cost(u)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
