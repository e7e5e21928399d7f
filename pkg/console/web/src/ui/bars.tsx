// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Bars of two parts, one above the other, as SVG: a few dozen shapes need no library of plots.
import { useSignal } from '@preact/signals';
import { short } from './format';

export interface Bar {
  name: string;
  low: number; // the lower part
  high: number; // the part on top of it
}

interface Props {
  bars: Bar[];
  label: string;
  parts: [string, string]; // the names of the lower and the upper part
}

const height = 160;
const width = 1000;

export function Bars({ bars, label, parts }: Props) {
  const at = useSignal(-1);
  const most = Math.max(1, ...bars.map((b) => b.low + b.high));
  const top = nice(most);
  const step = width / Math.max(1, bars.length);
  const wide = Math.min(step * 0.76, 80);
  const y = (v: number) => height - (v / top) * height;
  const shown = bars[at.value];
  const few = bars.length <= 8; // each has room for its name
  return (
    <figure class="bars">
      <figcaption>
        <span class="key c-in">{parts[0]}</span> <span class="key c-out">{parts[1]}</span>
        <span class="muted" role="status">{shown ? `${shown.name}: ${short(shown.low)} / ${short(shown.high)}` : ''}</span>
      </figcaption>
      <div class="plot">
        <div class="axis" aria-hidden="true"><span>{short(top)}</span><span>{short(top / 2)}</span><span>0</span></div>
        <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={`${label}: ${bars.length} bars, at most ${short(most)}`} onPointerLeave={() => (at.value = -1)}>
          {[0, 0.5, 1].map((f) => <line key={f} class="grid" x1={0} x2={width} y1={height * f} y2={height * f} />)}
          {bars.map((b, i) => (
            <g key={b.name} class={i === at.value ? 'at' : ''} onPointerEnter={() => (at.value = i)}>
              <rect class="reach" x={i * step} y={0} width={step} height={height} />
              <rect class="low" x={(i + 0.5) * step - wide / 2} width={wide} y={y(b.low)} height={height - y(b.low)} />
              <rect class="high" x={(i + 0.5) * step - wide / 2} width={wide} y={y(b.low + b.high)} height={y(b.low) - y(b.low + b.high)} />
            </g>
          ))}
        </svg>
      </div>
      <div class={`names ${few ? 'each' : ''}`} aria-hidden="true">{(few ? bars : [bars[0], bars.at(-1)]).map((b) => b && <span key={b.name}>{b.name}</span>)}</div>
    </figure>
  );
}

// nice returns the least of 1, 2 and 5 times a power of ten that is not below n.
function nice(n: number): number {
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].map((f) => f * power).find((v) => v >= n) ?? n;
}
