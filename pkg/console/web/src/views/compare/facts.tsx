// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What two runs are, with what is not the same.
import type { ComponentChildren } from 'preact';
import { promptOf } from '../../api/compare';
import type { Task } from '../../api/types';
import { taskHref } from '../../router';
import { clock, count } from '../../ui/format';
import { Phase, phaseOf } from '../../ui/phase';
import { agentOf, started, took } from '../../ui/tasktable';
import { Text, oneLine } from '../../ui/text';

const rows: Array<{ title: string; value: (t: Task) => string; show?: (t: Task) => ComponentChildren; free?: boolean }> = [
  { title: 'Phase', value: phaseOf, show: (t) => <Phase phase={phaseOf(t)} /> },
  { title: 'Prompt', value: (t) => oneLine(promptOf(t), 400) },
  { title: 'Agent', value: (t) => agentOf(t) || t.spec.type },
  { title: 'Model', value: (t) => t.status?.model ?? t.spec.ai?.model ?? '' },
  { title: 'Attempts', value: (t) => count(t.status?.attempts) },
  { title: 'Tokens in / out', value: (t) => `${count(t.status?.usage?.inputTokens)} / ${count(t.status?.usage?.outputTokens)}` },
  { title: 'Duration', value: took, free: true },
  { title: 'Started', value: (t) => clock(started(t)), free: true },
];

export function Facts({ a, b }: { a: Task; b: Task }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="The runs">
      <table class="compare" aria-label="The runs">
        <thead><tr><th scope="col"><span class="unseen">What</span></th>{[a, b].map((t) => <th key={t.metadata.uid} scope="col"><a href={taskHref(t.metadata.name)}><Text>{t.metadata.name}</Text></a></th>)}</tr></thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.title} class={!r.free && r.value(a) !== r.value(b) ? 'differs' : ''}>
              <th scope="row">{r.title}</th>
              {[a, b].map((t, i) => <td key={i} class="wide">{r.show ? r.show(t) : <Text>{r.value(t) || '–'}</Text>}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
