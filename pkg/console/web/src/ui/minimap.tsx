// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// All events of a run in one bar, by sequence: what kinds there are where, the failures, and which part is in view.
import type { Timeline } from '../api/events';
import { Canvas, type Paint } from './canvas';
import type { Kind } from './kinds';

interface Props {
  name: string;
  timeline: Timeline;
  view: [number, number] | undefined; // indices of the rows in view
  seq: number; // the selected event; 0: none
  onPick: (seq: number) => void;
}

// colours of the kinds, from the bottom of a bar to its top.
export const colours: Array<[Kind, string]> = [['task', 'edge'], ['other', 'edge'], ['model', 'c-model'], ['message', 'c-message'], ['tool', 'c-tool'], ['approval', 'c-approval']];

export function Minimap({ name, timeline, view, seq, onPick }: Props) {
  const oldest = timeline.oldest.value;
  const total = timeline.total();
  void timeline.version.value;
  if (total < 2) return null;
  const paint: Paint = (g, w, h, colour) => {
    const x = (n: number) => ((n - oldest) / total) * w;
    if (view) {
      g.fillStyle = colour('accent-soft');
      g.fillRect(x(view[0] + oldest), 0, Math.max(3, x(view[1] + oldest) - x(view[0] + oldest)), h);
    }
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
    if (seq) {
      g.fillStyle = colour('accent');
      g.fillRect(Math.max(0, x(seq) - 1), 0, 2, h);
    }
  };
  return <Canvas height={40} label={`Overview of the ${total} events of ${name}; failures are marked at the top`} paint={paint} onPick={(px, _, w) => onPick(Math.min(oldest + total - 1, oldest + Math.floor((px / w) * total)))} />;
}
