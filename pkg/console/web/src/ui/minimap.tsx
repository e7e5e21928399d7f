// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All events of a run in one bar, by sequence: what kinds there are where, the failures, and which part is in view.
import type { ReadonlySignal } from '@preact/signals';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Timeline } from '../api/events';
import { dark } from '../theme';
import { Canvas, type Paint } from './canvas';
import type { Kind } from './kinds';

interface Props {
  name: string;
  timeline: Timeline;
  view: ReadonlySignal<[number, number]> | undefined; // indices of the rows in view
  seq: number; // the selected event; 0: none
  onPick: (seq: number) => void;
}

// colours of the kinds, from the bottom of a bar to its top.
export const colours: Array<[Kind, string]> = [['task', 'edge'], ['other', 'edge'], ['model', 'c-model'], ['message', 'c-message'], ['tool', 'c-tool'], ['approval', 'c-approval']];

export function Minimap({ name, timeline, view, seq, onPick }: Props) {
  const drawn = timeline.drawn.value;
  const oldest = timeline.oldest.peek();
  const total = timeline.latest.peek() - oldest + 1;
  const paint: Paint = (g, w, h, colour) => {
    const x = (n: number) => ((n - oldest) / total) * w;
    g.fillStyle = colour('line');
    g.fillRect(0, h - 5, w, 1);
    for (const m of timeline.marks()) {
      const left = x(m.from);
      const width = Math.max(1, x(m.to + 1) - left - (x(m.to + 1) - left > 3 ? 1 : 0));
      let y = h - 6;
      for (const [kind, name] of colours) {
        const part = ((m.counts[kind] ?? 0) / Math.max(1, m.total)) * (h - 14);
        if (part === 0) continue;
        g.fillStyle = colour(name);
        g.fillRect(left, y - part, width, part);
        y -= part;
      }
      if (m.counts.failure) {
        g.fillStyle = colour('bad');
        g.fillRect(left, 0, Math.max(2, width), 6);
      }
    }
  };
  const pick = (px: number, _: number, w: number) => onPick(Math.min(oldest + total - 1, oldest + Math.floor((px / w) * total)));
  const bar = useMemo(() => <Canvas height={40} label={`Overview of the ${total} events of ${name}; failures are marked at the top`} paint={paint} onPick={pick} />, [drawn, dark.value, name]);
  if (!drawn) return <div class="minimap" />; // keeps its place
  if (total < 2) return null;
  return (
    <div class="minimap">
      {view && <Part view={view} total={total} />}
      {bar}
      {seq >= oldest && seq > 0 && <i class="here" style={{ left: `${(100 * (seq - oldest)) / total}%` }} />}
    </div>
  );
}

const thinnest = 0.0025; // of the bar, so that the part in view of a long run can be seen

// Part is what is in view. Scrolling moves it alone, by a transform, which paints nothing.
function Part({ view, total }: { view: ReadonlySignal<[number, number]>; total: number }) {
  const part = useRef<HTMLElement>(null);
  useLayoutEffect(() => view.subscribe(([from, to]) => {
    if (!part.current) return;
    const width = Math.max(thinnest, (to - from) / total);
    part.current.style.transform = `translateX(${100 * Math.min(from / total, 1 - width)}%) scaleX(${width})`;
  }), [view, total]);
  return <i ref={part} class="part" />;
}
