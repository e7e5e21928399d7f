// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A text that somebody decides about: all of it, with its lines counted. Emptiness that would move the rest out of view is folded,
// with words that say how much it is. Nothing scrolls inside of it, so that nothing is out of view beside what is in view.
import type { ComponentChildren } from 'preact';
import { count } from './format';
import { exactly } from './text';

const mostLines = 20; // between two marks
const mostChars = 1500;
const fewBlank = 3; // lines that are shown as they are

// seenMark selects the marks in a text. Whoever has seen all of them has seen the text.
export const seenMark = 'i[data-part]';

export function Whole({ text, label }: { text: string; label: string }) {
  const lines = text.split('\n');
  const blank = lines.filter((l) => !l.trim()).length;
  return (
    <>
      {lines.length > 1 && <p class="muted small counted">{count(lines.length)} lines{blank > 0 && `, ${count(blank)} of them blank`}</p>}
      <pre class="long whole" dir="auto" tabIndex={0} aria-label={label}>{folded(lines)}<i data-part /></pre>
    </>
  );
}

function folded(lines: string[]): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let rows = 0;
  for (let i = 0; i < lines.length; ) {
    let to = i;
    while (to < lines.length && !lines[to]?.trim()) to++;
    if (to - i > fewBlank) {
      out.push(<span class="fold">{count(to - i)} blank lines</span>, '\n');
      i = to;
      continue;
    }
    const line = lines[i++] ?? '';
    for (let at = 0; at < line.length; at += mostChars) {
      if (at > 0) out.push(<i data-part />);
      out.push(...spaced(line.slice(at, at + mostChars)));
    }
    if (i < lines.length) out.push('\n');
    if (++rows % mostLines === 0) out.push(<i data-part />);
  }
  return out;
}

// spaced folds runs of 80 spaces and more in a line.
function spaced(line: string): ComponentChildren[] {
  return line.split(/([ \t]{80,})/).map((s, i) => (i % 2 ? <span class="fold">{count(s.length)} spaces</span> : exactly(s)));
}
