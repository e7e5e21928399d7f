// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One answer, loaded when its key changes.
import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import { aborted, ended } from './client';
import { visible } from './list';

export interface Loaded<T> {
  data: ReadonlySignal<T | null>;
  error: ReadonlySignal<unknown>;
  loading: ReadonlySignal<boolean>;
  reload: () => void;
}

// useLoad calls load when key changes, and again after each period of every milliseconds while the page is visible. An empty key
// loads nothing. The data stays until there is other data, or until of changes, which names what the data is about.
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>, every = 0, of = key): Loaded<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
  const loading = useSignal(true);
  const again = useSignal(0);
  const round = again.value;
  const out = ended.value; // whoever signs in again sees what was refused
  useLayoutEffect(() => {
    data.value = null; // never another object's data
    error.value = null;
  }, [of]);
  useLayoutEffect(() => {
    if (!key || (out && error.peek())) return;
    const end = new AbortController();
    loading.value = !error.peek(); // an error stays until there is an answer
    load(end.signal).then(
      (v) => {
        if (end.signal.aborted) return;
        data.value = v;
        error.value = null;
        loading.value = false;
      },
      (e: unknown) => {
        if (aborted(e) || end.signal.aborted) return;
        error.value = e;
        loading.value = false;
      },
    );
    return () => end.abort();
  }, [key, round, out && error.peek() !== null]);
  useEffect(() => {
    if (!every) return;
    const timer = setInterval(() => visible.peek() && again.value++, every);
    return () => clearInterval(timer);
  }, [every]);
  return { data, error, loading, reload: () => void again.value++ };
}
