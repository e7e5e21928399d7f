// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A table of links. j and k move between the rows of all tables of a view, and Enter follows the link.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useKeys } from '../keys';

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  kind?: 'number' | 'wide' | 'minor' | 'number minor'; // right-aligned, as wide as possible, or left out on a phone
}

interface Props<T> {
  label: string;
  rows: T[];
  columns: Array<Column<T>>; // the first one's cell is the text of the link
  id: (row: T) => string;
  link: (row: T) => string;
  failed?: (row: T) => boolean; // for [ and ]
  below?: (row: T) => ComponentChildren; // what is said of a row under its link
  marks?: Marks<T> | undefined; // for rows that can be selected
}

// Marks are the rows that somebody has selected.
export interface Marks<T> {
  has: (row: T) => boolean;
  set: (rows: T[], on: boolean) => void;
  name: (row: T) => string;
}

// rowOf returns the link of the row that has the focus.
const rowOf = (e: Element | null) => e?.closest('tr')?.querySelector<HTMLAnchorElement>('a.row') ?? null;

// move gives the focus to the next row of the view's tables, in the order of the document; only says which rows count.
function move(by: 1 | -1, only = 'a.row'): boolean {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('main a.row')];
  const at = links.indexOf(rowOf(document.activeElement) as HTMLAnchorElement);
  const left = by > 0 ? links.slice(at + 1) : links.slice(0, at < 0 ? links.length : at).reverse();
  const next = left.find((a) => a.matches(only));
  next?.focus();
  return next !== undefined;
}

export function Table<T>({ label, rows, columns, id, link, failed, below, marks }: Props<T>) {
  const box = useRef<HTMLTableElement>(null);
  const all = marks && rows.length > 0 && rows.every(marks.has);
  const toggle = () => {
    const at = [...(box.current?.querySelectorAll('a.row') ?? [])].indexOf(rowOf(document.activeElement) as Element);
    const row = rows[at];
    if (!row) return false;
    marks?.set([row], !marks.has(row));
    return undefined;
  };
  useKeys([
    ...(marks ? [
      { key: 'x', label: 'Select the row, or not', run: toggle },
      { key: 'a', label: 'Select all rows, or none', run: () => marks.set(rows, !all) },
    ] : []),
    { key: 'j', label: 'Next row', run: () => void move(1) },
    { key: 'k', label: 'Row before', run: () => void move(-1) },
    ...(failed ? [
      { key: ']', label: 'Next failure', run: () => move(1, '[data-failed]') },
      { key: '[', label: 'Last failure before', run: () => move(-1, '[data-failed]') },
    ] : []),
  ]);
  return (
    <div class="scroll-x">
      <table ref={box} aria-label={label} class={below ? 'lines' : undefined}>
        <thead>
          <tr>{marks && <th class="mark" scope="col"><input type="checkbox" aria-label="Select all rows" checked={all} onChange={(e) => marks.set(rows, e.currentTarget.checked)} /></th>}{columns.map((c) => <th key={c.title} class={c.kind} scope="col">{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={id(r)} class={marks?.has(r) ? 'marked' : undefined}>
              {marks && <td class="mark"><input type="checkbox" aria-label={`Select ${marks.name(r)}`} checked={marks.has(r)} onChange={(e) => marks.set([r], e.currentTarget.checked)} /></td>}
              {columns.map((c, i) => <td key={c.title} class={c.kind}>{i === 0 ? <><a class="row" href={link(r)} data-failed={failed?.(r) ? '' : undefined}>{c.cell(r)}</a>{below?.(r)}</> : c.cell(r)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
