// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A table of links. j and k move between the rows of all tables of a view, and Enter follows the link.
import type { ComponentChildren } from 'preact';
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
}

// move gives the focus to the next row of the view's tables, in the order of the document; only says which rows count.
function move(by: 1 | -1, only = 'a.row'): boolean {
  const links = [...document.querySelectorAll<HTMLAnchorElement>('main a.row')];
  const at = links.indexOf(document.activeElement as HTMLAnchorElement);
  const left = by > 0 ? links.slice(at + 1) : links.slice(0, at < 0 ? links.length : at).reverse();
  const next = left.find((a) => a.matches(only));
  next?.focus();
  return next !== undefined;
}

export function Table<T>({ label, rows, columns, id, link, failed }: Props<T>) {
  useKeys([
    { key: 'j', label: 'Next row', run: () => void move(1) },
    { key: 'k', label: 'Row before', run: () => void move(-1) },
    ...(failed ? [
      { key: ']', label: 'Next failure', run: () => move(1, '[data-failed]') },
      { key: '[', label: 'Last failure before', run: () => move(-1, '[data-failed]') },
    ] : []),
  ]);
  return (
    <div class="scroll-x">
      <table aria-label={label}>
        <thead>
          <tr>{columns.map((c) => <th key={c.title} class={c.kind} scope="col">{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={id(r)}>
              {columns.map((c, i) => <td key={c.title} class={c.kind}>{i === 0 ? <a class="row" href={link(r)} data-failed={failed?.(r) ? '' : undefined}>{c.cell(r)}</a> : c.cell(r)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
