// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Keys that move through the parts of a long view. A part has data-step and can have the focus; one that failed has
// the class bad.
import type { RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import { useKeys } from '../keys';

// useSteps returns the reference of the element that holds the parts. beyond is called where no failure is left among them.
export function useSteps<T extends HTMLElement>(what: string, beyond?: (forward: boolean) => void): RefObject<T | null> {
  const box = useRef<T>(null);
  const move = (by: number, only = '') => {
    const parts = [...(box.current?.querySelectorAll<HTMLElement>('[data-step]') ?? [])];
    const at = parts.findIndex((p) => p.contains(document.activeElement));
    const from = at < 0 && by < 0 ? parts.length : at;
    const left = by > 0 ? parts.slice(from + 1) : parts.slice(0, Math.max(0, from)).reverse();
    const next = left.find((p) => !only || p.matches(only));
    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
    return next !== undefined;
  };
  useKeys([
    { key: 'j', label: `Next ${what}`, run: () => void move(1) },
    { key: 'k', label: `Last ${what} before`, run: () => void move(-1) },
    ...(beyond ? [
      { key: ']', label: 'Next failure', run: () => void (move(1, '.bad') || beyond(true)) },
      { key: '[', label: 'Last failure before', run: () => void (move(-1, '.bad') || beyond(false)) },
    ] : []),
  ]);
  return box;
}
