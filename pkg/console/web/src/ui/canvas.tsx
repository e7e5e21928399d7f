// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A canvas that is drawn anew when its size, the theme or its data change.
import { useEffect, useRef } from 'preact/hooks';
import { dark } from '../theme';

// Paint draws in CSS pixels. colour returns a colour of the theme by its name, such as "accent".
export type Paint = (g: CanvasRenderingContext2D, width: number, height: number, colour: (name: string) => string) => void;

interface Props {
  label: string;
  height?: number; // px; as high as its box if it is left out
  paint: Paint;
  onPick?: (x: number, y: number, width: number) => void;
  onHover?: (x: number, y: number) => void;
}

export function Canvas({ label, height, paint, onPick, onHover }: Props) {
  const ref = useRef<HTMLCanvasElement>(null);
  const latest = useRef(paint);
  latest.current = paint;
  const draw = () => {
    const c = ref.current;
    const g = c?.getContext('2d');
    if (!c || !g) return;
    const w = c.clientWidth;
    const h = c.clientHeight;
    const scale = window.devicePixelRatio || 1;
    if (c.width !== Math.round(w * scale) || c.height !== Math.round(h * scale)) {
      c.width = Math.round(w * scale);
      c.height = Math.round(h * scale);
    }
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, w, h);
    const style = getComputedStyle(c);
    const colours = new Map<string, string>(); // each is asked for once, because the answer computes styles
    const colour = (name: string) => {
      let known = colours.get(name);
      if (known === undefined) colours.set(name, (known = style.getPropertyValue(`--${name}`).trim()));
      return known;
    };
    latest.current(g, w, h, colour);
  };
  void dark.value;
  useEffect(draw);
  useEffect(() => {
    if (!ref.current) return;
    const watch = new ResizeObserver(draw);
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  const at = (e: MouseEvent, call: ((x: number, y: number, width: number) => void) | undefined) => call?.(e.offsetX, e.offsetY, ref.current?.clientWidth ?? 1);
  return (
    <canvas ref={ref} class="canvas" role="img" aria-label={label} style={height ? { height: `${height}px` } : { height: '100%' }} onClick={(e) => at(e, onPick)} onMouseMove={(e) => at(e, onHover)} />
  );
}
