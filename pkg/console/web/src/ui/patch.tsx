// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Lines that went and lines that came, by their signs and by colour.
import type { ComponentChildren } from 'preact';
import { diff, type Run } from '../api/diff';
import { hunk } from '../api/patch';
import { count } from './format';
import { visible } from './text';

interface Block {
  kind: 'same' | 'del' | 'ins' | 'head';
  text: ComponentChildren;
}

const mostBlocks = 300; // what follows them is plain

function Lines({ blocks, label }: { blocks: Block[]; label: string }) {
  return (
    <pre class="long patch" tabIndex={0} aria-label={label}>
      {blocks.map((b, i) => {
        if (b.kind === 'same' || i >= mostBlocks) return <span key={i}>{b.text}</span>;
        if (b.kind === 'head') return <span key={i} class="hunk">{b.text}</span>;
        return b.kind === 'del' ? <del key={i}>{b.text}</del> : <ins key={i}>{b.text}</ins>;
      })}
    </pre>
  );
}

// Patch is a text in the unified format.
export function Patch({ text, label }: { text: string; label: string }) {
  const groups: Array<[Block['kind'], string[]]> = [];
  let [less, more] = [0, 0]; // lines that the hunk still has of each side
  for (const line of text.replace(/\n$/, '').split('\n')) {
    let kind: Block['kind'] = 'same';
    const begins = hunk.exec(line);
    if (less > 0 || more > 0) {
      if (line.startsWith('-')) kind = 'del';
      else if (line.startsWith('+')) kind = 'ins';
      if (kind !== 'ins' && !line.startsWith('\\')) less--;
      if (kind !== 'del' && !line.startsWith('\\')) more--;
    } else if (begins) {
      kind = 'head';
      [less, more] = [Number(begins[1] ?? 1), Number(begins[2] ?? 1)];
    } else if (/^(diff |index |--- |\+\+\+ )/.test(line)) kind = 'head';
    const last = groups.at(-1);
    if (last?.[0] === kind) last[1].push(line);
    else groups.push([kind, [line]]);
  }
  return <Lines label={label} blocks={groups.map(([kind, lines]) => ({ kind, text: visible(lines.join('\n')) }))} />;
}

const around = 3; // lines that are shown of what is the same, on each side of what is not
const mostWords = 2000; // of a change in which words are compared
const mostMarks = 60;

const signed = (sign: string, text: string) => `${sign} ${text.replaceAll('\n', `\n${sign} `)}`;

// Difference shows what is not the same in two texts.
export function Difference({ a, b, label }: { a: string; b: string; label: string }) {
  const [as, bs] = [visible(a).split('\n'), visible(b).split('\n')];
  const runs = diff(as, bs);
  const blocks: Block[] = [];
  for (let i = 0; i < runs.length; i++) {
    const [run, after] = [runs[i], runs[i + 1]];
    if (!run) break;
    const text = (run.kind === 'ins' ? bs.slice(run.b, run.b + run.n) : as.slice(run.a, run.a + run.n)).join('\n');
    if (run.kind === 'same') {
      const lines = text.split('\n');
      const [first, last] = [i === 0 ? 0 : around, i === runs.length - 1 ? 0 : around];
      if (lines.length <= first + last + 1) blocks.push({ kind: 'same', text: signed(' ', text) });
      else {
        if (first) blocks.push({ kind: 'same', text: signed(' ', lines.slice(0, first).join('\n')) });
        blocks.push({ kind: 'head', text: `… ${count(lines.length - first - last)} lines that are the same` });
        if (last) blocks.push({ kind: 'same', text: signed(' ', lines.slice(-last).join('\n')) });
      }
    } else if (run.kind === 'del' && after?.kind === 'ins') {
      const came = bs.slice(after.b, after.b + after.n).join('\n');
      blocks.push(...changed(text, came));
      i++;
    } else blocks.push({ kind: run.kind, text: signed(run.kind === 'del' ? '-' : '+', text) });
  }
  return <Lines blocks={blocks} label={label} />;
}

// wordsOf returns two texts as words, and what these have in common: no run if there are too many of them.
function wordsOf(a: string, b: string): { as: string[]; bs: string[]; runs: Run[]; part: number } {
  const split = (t: string): string[] => t.match(/\n|[^\S\n]+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  const [as, bs] = [split(a), split(b)];
  const runs = as.length + bs.length > mostWords ? [] : diff(as, bs);
  const kept = runs.filter((r) => r.kind === 'same').reduce((n, r) => n + as.slice(r.a, r.a + r.n).join('').trim().length, 0);
  return { as, bs, runs, part: kept / Math.max(1, a.length, b.length) };
}

// shared returns which part of the longer of two texts the other one has too, from 0 to 1.
export function shared(a: string, b: string): number {
  return a.length + b.length > 20 * mostWords ? 1 : wordsOf(a, b).part;
}

// changed are lines that became others, with the words in them that did.
function changed(a: string, b: string): Block[] {
  const { as, bs, runs, part } = wordsOf(a, b);
  const few = runs.length > 0 && runs.length <= mostMarks && part >= 0.25; // else marks would be everywhere
  const side = (kind: 'del' | 'ins', sign: string, all: string, words: string[]): Block => {
    if (!few) return { kind, text: signed(sign, all) };
    const put = (t: string) => t.replaceAll('\n', `\n${sign} `);
    const text = runs.filter((r) => r.kind === 'same' || r.kind === kind).map((r, i) => {
      const from = kind === 'del' ? r.a : r.b;
      const t = put(words.slice(from, from + r.n).join(''));
      return r.kind === 'same' ? t : <b key={i}>{t}</b>;
    });
    return { kind, text: [`${sign} `, ...text] };
  };
  return [side('del', '-', a, as), side('ins', '+', b, bs)];
}
