// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The spans of a run over time. Only those in view are drawn, so their number does not matter.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Canvas, type Paint } from './canvas';
import { duration } from './format';
import { oneLine } from './text';

export interface Bar {
  id: string;
  name: string;
  kind: 'model' | 'tool' | 'child' | 'approval';
  from: number; // ms since the epoch
  to: number;
  failed: boolean;
  running: boolean;
  critical: boolean; // on the critical path
  seq: number; // of the event that began it
}

const height = 20; // px of a bar
const names = 200; // px for names; the scale in run.css has them as well
const rest = 72; // px for the duration behind the last bar; likewise
const highest = 8_000_000; // px of an element

export function Waterfall({ bars, selected, onSelect }: { bars: Bar[]; selected: number; onSelect: (index: number) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const over = useSignal(-1);
  const full = Math.min(highest, bars.length * height);
  let first = Infinity;
  let last = -Infinity;
  for (const b of bars) {
    first = Math.min(first, b.from);
    last = Math.max(last, b.to);
  }
  const length = Math.max(1, last - first);
  useEffect(() => {
    const b = box.current;
    if (!b || selected < 0) return;
    if (selected * height < b.scrollTop) b.scrollTop = selected * height;
    else if ((selected + 2) * height > b.scrollTop + b.clientHeight) b.scrollTop = (selected + 2) * height - b.clientHeight;
  }, [selected]);

  const paint: Paint = (g, w, h, colour) => {
    const left = Math.min(names, w / 3);
    const room = w - left - rest;
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    const begin = Math.floor(top.value / height);
    const end = Math.min(bars.length, Math.ceil((top.value + h) / height));
    g.fillStyle = colour('line');
    for (let i = 0; i <= 4; i++) g.fillRect(left + (room * i) / 4, 0, 1, h);
    for (let i = begin; i < end; i++) {
      const b = bars[i];
      if (!b) continue;
      const y = i * height - top.value;
      if (i === selected || i === over.value) {
        g.fillStyle = colour(i === selected ? 'accent-soft' : 'raised');
        g.fillRect(0, y, w, height);
      }
      const x = left + ((b.from - first) / length) * room;
      const width = Math.max(2, ((b.to - b.from) / length) * room);
      g.fillStyle = colour(b.failed ? 'bad' : `c-${b.kind === 'child' ? 'message' : b.kind}`);
      g.fillRect(x, y + 5, width, height - 10);
      if (b.critical) g.fillRect(x, y + height - 3, width, 2);
      g.fillStyle = colour(b.failed ? 'bad' : 'text');
      g.fillText(oneLine(b.name, 60), 8, y + height / 2, left - 16);
      g.fillStyle = colour('muted');
      g.fillText(b.running ? 'running' : duration(b.to - b.from), Math.min(x + width + 6, w - 66), y + height / 2);
    }
  };
  const index = (y: number) => {
    const i = Math.floor((top.value + y) / height);
    return i < bars.length ? i : -1;
  };
  return (<>
    <div class="scale" aria-hidden="true">{[0, 1, 2, 3, 4].map((i) => <span key={i}>{duration((length * i) / 4)}</span>)}</div>
    <div ref={box} class="waterfall" style={{ height: `min(52vh, 560px, ${full + 2}px)` }} onScroll={(e) => (top.value = e.currentTarget.scrollTop)} onMouseLeave={() => (over.value = -1)} tabIndex={0} role="group" aria-label="Waterfall">
      <div class="filler" style={{ height: `${full}px` }} />
      <div class="window">
        <Canvas
          label={`${bars.length} spans over ${duration(length)}`}
          paint={(...a) => (void top.value, void over.value, paint(...a))}
          onPick={(_, y) => index(y) >= 0 && onSelect(index(y))}
          onHover={(_, y) => (over.value = index(y))}
        />
      </div>
    </div>
  </>);
}
