// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A table of links. j and k move between its rows, and Enter follows the link.
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
}

export function Table<T>({ label, rows, columns, id, link, failed }: Props<T>) {
  const ref = useRef<HTMLTableElement>(null);
  const move = (by: number) => {
    const links = [...(ref.current?.querySelectorAll<HTMLAnchorElement>('a.row') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  };
  const fail = (by: number) => {
    const links = [...(ref.current?.querySelectorAll<HTMLAnchorElement>('a.row') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    for (let i = at < 0 && by < 0 ? links.length - 1 : at + by; i >= 0 && i < rows.length; i += by) {
      const row = rows[i];
      if (row !== undefined && failed?.(row)) return links[i]?.focus();
    }
    return false;
  };
  useKeys([
    { key: 'j', label: 'Next row', run: () => move(1) },
    { key: 'k', label: 'Row before', run: () => move(-1) },
    ...(failed ? [
      { key: ']', label: 'Next failure', run: () => fail(1) },
      { key: '[', label: 'Last failure before', run: () => fail(-1) },
    ] : []),
  ]);
  return (
    <div class="scroll-x">
      <table ref={ref} aria-label={label}>
        <thead>
          <tr>{columns.map((c) => <th key={c.title} class={c.kind} scope="col">{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={id(r)}>
              {columns.map((c, i) => <td key={c.title} class={c.kind}>{i === 0 ? <a class="row" href={link(r)}>{c.cell(r)}</a> : c.cell(r)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
