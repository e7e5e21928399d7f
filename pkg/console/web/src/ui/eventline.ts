// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One event as a row. Rows are drawn in each frame of scrolling, so their texts are written into elements that stay.
import type { Event } from '../api/types';
import { duration, offset, short, words } from './format';
import { failed, kindOf } from './kinds';
import { oneLine } from './text';

interface Cells {
  event: Event | undefined;
  start: number;
  seq: Text;
  at: Text;
  type: Text;
  kind: HTMLElement;
  what: Text;
  text: HTMLElement;
  figure: Text;
}

const fits = 40; // characters that a row has room for, beside the details, too
const other = /[^ -\u024f]/; // than Latin: wider, higher, or from right to left

const known = new WeakMap<HTMLElement, Cells>();

// make fills an element with the cells of a row.
function make(slot: HTMLElement): Cells {
  const cell = (name: string, inner?: HTMLElement) => {
    const span = document.createElement('span');
    const text = document.createTextNode('');
    span.className = name;
    (inner ?? span).append(text);
    if (inner) span.append(inner);
    slot.append(span);
    return text;
  };
  const inner = document.createElement('bdi');
  const [seq, at, type, what, figure] = [cell('seq'), cell('at'), cell('kind'), cell('what', inner), cell('figure')];
  const cells = { event: undefined, start: NaN, seq, at, type, kind: type.parentElement as HTMLElement, what, text: inner.parentElement as HTMLElement, figure };
  slot.classList.add('waiting');
  known.set(slot, cells);
  return cells;
}

// drawEvent shows an event, or, while it is not there, its number.
export function drawEvent(slot: HTMLElement, event: Event | undefined, index: number, start: number): void {
  const cells = known.get(slot) ?? make(slot);
  const put = (node: Text, text: string) => node.data !== text && (node.data = text);
  put(cells.seq, String(event?.seq ?? index));
  if (event === cells.event && start === cells.start) return;
  if (!event !== !cells.event) slot.classList.toggle('waiting', !event);
  cells.event = event;
  cells.start = start;
  put(cells.at, event ? offset(Date.parse(event.createdAt) - start) : '');
  cells.kind.className = event ? `kind ${failed(event) ? 'failure' : kindOf(event.type)}` : 'kind';
  put(cells.type, event ? words(event.type) : '');
  const what = event ? oneLine(event.summary ?? event.contentText ?? '') : '';
  cells.text.classList.toggle('long', what.length > fits || other.test(what));
  put(cells.what, what);
  put(cells.figure, event ? figure(event) : '');
}

// figure is the number that matters most about an event.
function figure(e: Event): string {
  if (e.inputTokens !== undefined || e.outputTokens !== undefined) return `${short(e.inputTokens)} → ${short(e.outputTokens)}`;
  const ms = e.content?.durationMs;
  if (typeof ms === 'number' && ms > 0) return duration(ms);
  const chars = e.content?.contentChars ?? e.content?.resultLength;
  return typeof chars === 'number' ? `${short(chars)} chars` : '';
}
