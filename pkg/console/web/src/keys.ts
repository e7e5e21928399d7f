// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Keys of the present views. What was mounted last answers first.
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { go, href } from './router';

export interface Key {
  key: string; // as KeyboardEvent.key, such as "j", "?" or "Enter"
  label: string; // what it does; the help shows it
  run: () => unknown; // false: this does not concern it, and the view below it is asked
}

const layers: Array<{ current: Key[] }> = [];
const places = new Map<string, { path: string; label: string }>(); // after g
export const helpOpen = signal(false);

// goTo lets "g" and a letter show a view.
export function goTo(letter: string, path: string, label: string): void {
  places.set(letter, { path, label });
}

// useKeys makes keys work while a component is mounted: from the moment it is seen, not a frame later.
export function useKeys(keys: Key[]): void {
  const ref = useRef(keys);
  ref.current = keys;
  useLayoutEffect(() => {
    layers.unshift(ref);
    return () => {
      layers.splice(layers.indexOf(ref), 1);
    };
  }, []);
}

// known returns all keys that work now, for the help.
export function known(): Array<{ keys: string[]; label: string }> {
  const all = new Map<string, { keys: string[]; label: string }>();
  for (const layer of layers) {
    for (const k of layer.current) if (!all.has(k.key)) all.set(k.key, { keys: [k.key], label: k.label });
  }
  const going = [...places].map(([letter, p]) => ({ keys: ['g', letter], label: p.label }));
  return [...all.values(), ...going, { keys: ['?'], label: 'This help' }, { keys: ['Esc'], label: 'Close, or leave a field' }];
}

function typing(e: KeyboardEvent): boolean {
  const t = e.target;
  return (t instanceof HTMLInputElement && t.type !== 'checkbox') || t instanceof HTMLTextAreaElement || t instanceof HTMLSelectElement;
}

export function listen(): void {
  let pending = 0; // until when a letter after g counts
  document.addEventListener('keydown', (e) => {
    if (e.metaKey || e.ctrlKey || e.altKey || e.isComposing) return;
    if (e.key === 'Escape') {
      if (helpOpen.value) helpOpen.value = false;
      else if (typing(e)) (e.target as HTMLElement).blur();
      else fire(e);
      return;
    }
    if (typing(e)) return;
    if (pending > Date.now()) {
      pending = 0;
      const place = places.get(e.key);
      if (place) {
        e.preventDefault();
        go(href(place.path));
        return;
      }
    }
    if (e.key === 'g') pending = Date.now() + 1500;
    else if (e.key === '?') helpOpen.value = !helpOpen.value;
    else fire(e);
  });
}

function fire(e: KeyboardEvent): void {
  // A focused control keeps the keys that it understands.
  const on = e.target instanceof Element ? e.target.closest('a, button, input, summary, [role=tab], dialog') : null;
  if (on && (e.key === 'Enter' || e.key === ' ')) return;
  for (const layer of layers) {
    const found = layer.current.find((k) => k.key === e.key);
    if (found && found.run() !== false) {
      e.preventDefault();
      return;
    }
  }
}
