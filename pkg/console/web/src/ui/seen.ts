// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Whether the marks of a text were in view.
import { useSignal, type Signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { seenMark } from './whole';

export interface Seen {
  box: RefObject<HTMLDivElement | null>; // the element around the text
  left: Signal<number>; // marks that were not in view; below 0 until they are counted
  next: () => void; // shows the first of these
}

export function useSeen(text: string | undefined): Seen {
  const box = useRef<HTMLDivElement>(null);
  const left = useSignal(-1);
  const unseen = useRef(new Set<Element>());
  useLayoutEffect(() => {
    const marks = [...(box.current?.querySelectorAll(seenMark) ?? [])];
    const inView = (m: Element) => {
      const { top, bottom } = m.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    };
    unseen.current = new Set(marks.filter((m) => !inView(m)));
    left.value = unseen.current.size;
    if (unseen.current.size === 0) return;
    const observer = new IntersectionObserver((list) => {
      for (const e of list) {
        if (!e.isIntersecting) continue;
        unseen.current.delete(e.target);
        observer.unobserve(e.target);
      }
      left.value = unseen.current.size;
    });
    for (const m of unseen.current) observer.observe(m);
    return () => observer.disconnect();
  }, [text]);
  return { box, left, next: () => [...unseen.current][0]?.scrollIntoView({ block: 'center' }) };
}
