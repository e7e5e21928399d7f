// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A list of any length with rows of one height. Only as many elements exist as fit into view: each is used again for another row.
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export const rowHeight = 28;
const highest = 15_000_000; // px: browsers cannot make higher elements; longer lists scroll at a ratio
const spare = 4; // rows above and below the view

export interface RowsApi {
  show: (index: number, where?: 'nearest' | 'center') => void;
  toEnd: () => void;
}

interface Props {
  label: string;
  total: number;
  row: (index: number) => ComponentChildren;
  need: (from: number, to: number) => void;
  selected: number; // -1: none
  onSelect: (index: number) => void;
  onView?: (from: number, to: number) => void;
  api?: { current: RowsApi | null };
  follow?: boolean; // keep to the end while the end is in view
  begin?: number | 'end'; // the row that is first shown, in the middle
}

export function Rows({ label, total, row, need, selected, onSelect, onView, api, follow, begin = 0 }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0); // px in the list, as if it had its full height
  const height = useSignal(0); // px of the view
  const atEnd = useRef(false);
  const later = useRef(-1);
  const chosen = useRef(selected);
  chosen.current = selected;
  const keep = useRef(follow);
  keep.current = follow;
  const full = total * rowHeight;
  const shown = Math.min(full, highest);
  const all = useRef(full);
  all.current = full;
  const ratio = () => { // of px in the list to px of the scroll bar; observers call it later, so it reads what is true then
    const room = Math.min(all.current, highest) - height.value;
    return all.current > highest && room > 0 ? (all.current - height.value) / room : 1;
  };

  const read = () => {
    const b = box.current;
    if (!b) return;
    top.value = b.scrollTop * ratio();
    atEnd.current = b.scrollTop + b.clientHeight >= Math.min(all.current, highest) - 2;
  };
  const scrollTo = (px: number) => {
    const b = box.current;
    if (!b) return;
    b.scrollTop = px / ratio();
    read();
  };

  useLayoutEffect(() => {
    const b = box.current;
    if (!b) return;
    const watch = new ResizeObserver(() => {
      const before = height.value;
      const end = keep.current && atEnd.current;
      height.value = b.clientHeight;
      if (later.current >= 0 && height.value > 0) {
        scrollTo(Math.max(0, later.current * rowHeight - height.value / 2 + rowHeight));
        later.current = -1;
        return;
      }
      if (end) scrollTo(all.current);
      else read();
      const at = chosen.current * rowHeight; // what was selected stays in view
      if (at >= 0 && before > 0 && at + rowHeight > top.value + height.value && at < top.value + before) scrollTo(at + rowHeight - height.value);
    });
    watch.observe(b);
    height.value = b.clientHeight;
    if (begin === 'end') scrollTo(full);
    else if (begin > 0 && height.value > 0) scrollTo(Math.max(0, begin * rowHeight - height.value / 2 + rowHeight));
    else if (begin > 0) later.current = begin;
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (follow && atEnd.current) scrollTo(full);
    else read();
  }, [full, follow]);

  if (api) {
    api.current = {
      show: (index, where = 'nearest') => {
        if (height.peek() === 0) later.current = index; // the list is not shown yet
        const at = index * rowHeight;
        if (where === 'center') scrollTo(Math.max(0, at - height.value / 2 + rowHeight));
        else if (at < top.value) scrollTo(at);
        else if (at + rowHeight > top.value + height.value) scrollTo(at + rowHeight - height.value);
      },
      toEnd: () => {
        scrollTo(full);
        atEnd.current = true;
      },
    };
  }

  const first = Math.max(0, Math.floor(top.value / rowHeight) - spare);
  const pool = Math.min(total, Math.ceil(height.value / rowHeight) + 2 * spare + 1);
  const from = Math.max(0, Math.min(first, total - pool));
  const to = from + pool;
  useEffect(() => {
    if (pool === 0) return;
    need(from, to);
    onView?.(Math.floor(top.value / rowHeight), Math.min(total, Math.ceil((top.value + height.value) / rowHeight)));
  });

  // Each slot of the pool keeps its place in the document and shows the row whose index has its remainder.
  const slots: ComponentChildren[] = [];
  for (let slot = 0; slot < pool; slot++) {
    const index = from + ((slot - (from % pool) + pool) % pool);
    slots.push(
      <div
        key={slot}
        id={`slot-${slot}`}
        role="option"
        class="line"
        aria-selected={index === selected}
        aria-posinset={index + 1}
        aria-setsize={total}
        style={{ transform: `translateY(${index * rowHeight - top.value}px)` }}
        onClick={() => onSelect(index)}
      >
        {row(index)}
      </div>,
    );
  }
  return (
    <div ref={box} class="rows" role="listbox" aria-label={label} tabIndex={0} aria-activedescendant={selected >= from && selected < to ? `slot-${selected % pool}` : undefined} onScroll={read}>
      <div class="filler" role="presentation" style={{ height: `${shown}px` }} />
      <div class="window" role="presentation">{slots}</div>
    </div>
  );
}
