// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Lists that stay current: a list, then a watch from its version.
import { computed, signal, useSignal, type ReadonlySignal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { ApiError, aborted, ended, get, query, send } from './client';
import { whole } from './paths';
import { Backoff, lines } from './stream';
import type { Item, List } from './types';

// visible is false while the page is in a background tab. Streams end then, because a browser has few connections to a server
// for all of its tabs.
export const visible = signal(document.visibilityState !== 'hidden');

// awake is true while streams may be open: somebody looks, and the session is good.
export const awake = computed(() => visible.value && !ended.value);
document.addEventListener('visibilitychange', () => (visible.value = document.visibilityState !== 'hidden'));

export interface ListState<T> {
  items: ReadonlySignal<T[]>;
  loading: ReadonlySignal<boolean>; // until the first answer
  error: ReadonlySignal<unknown>; // null while the list is current
  rest: ReadonlySignal<number>; // how many more there are; -1 if that is not known
  more: () => void; // loads the next page
}

interface Change<T> {
  type: string;
  object: T & { code?: number };
}

// useList lists path with the parameters, and watches it while the page is visible. With a limit of 0 it has all items, which one
// request brings and keeps current. An empty path lists nothing.
export function useList<T extends Item>(path: string, params: Record<string, string | undefined> = {}, limit = 200): ListState<T> {
  const items = useSignal<T[]>([]);
  const loading = useSignal(true);
  const error = useSignal<unknown>(null);
  const rest = useSignal(0);
  const want = useSignal(limit);
  const key = query(path, params);
  const shown = awake.value;

  // What is shown first is asked for before it is painted that it is not there.
  useLayoutEffect(() => {
    loading.value = true;
    if (items.peek().length > 0) items.value = [];
    want.value = limit;
  }, [key]);

  const size = want.value;
  useLayoutEffect(() => {
    if (!shown || !path) return;
    const end = new AbortController();
    const all = new Map<string, T>();
    let timer = 0;
    const publish = () => {
      timer = 0;
      if (!end.signal.aborted) items.value = [...all.values()];
    };
    const apply = (c: Change<T>, shown: boolean) => {
      const name = c.object.metadata.name;
      if (c.type === 'DELETED') all.delete(name);
      else all.set(name, c.object);
      if (shown) timer ||= window.setTimeout(publish, 100); // many changes are one repaint
    };
    const first = () => {
      publish();
      loading.value = false;
      error.value = null;
    };
    const follow = async () => {
      const backoff = new Backoff();
      let version = '';
      while (!end.signal.aborted) {
        try {
          if (!version && size === 0) all.clear();
          else if (!version) {
            const list = await get<List<T>>(query(path, { ...params, limit: size }), end.signal);
            all.clear();
            for (const i of list.items) all.set(i.metadata.name, i);
            version = list.metadata.resourceVersion ?? '';
            rest.value = list.metadata.continue ? (list.metadata.remainingItemCount ?? -1) : 0;
            first();
          }
          const from = version ? query(path, { ...params, watch: true, allowWatchBookmarks: true, resourceVersion: version }) : whole(path, params);
          await watch<T>(from, end.signal, (c) => {
            const whole = c.object.metadata.annotations?.['k8s.io/initial-events-end'];
            const complete = version || whole;
            if (complete) version = c.object.metadata.resourceVersion ?? version;
            if (c.type !== 'BOOKMARK') apply(c, Boolean(complete)); // a list that is being read is shown when it is whole
            else if (whole || (complete && loading.value)) first();
            if (!complete) return;
            error.value = null;
            backoff.reset();
          });
        } catch (e) {
          const over = e instanceof ApiError && e.code === 401; // which ends all reading, this one included
          if (aborted(e) || (end.signal.aborted && !over)) return;
          if (e instanceof ApiError && e.code === 410) version = '';
          error.value = e;
          loading.value = false;
          if (over || (e instanceof ApiError && (e.code === 403 || e.code === 404))) return;
          await backoff.wait(end.signal);
        }
      }
    };
    void follow();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [key, size, shown]);

  return { items, loading, error, rest, more: () => (want.value += limit) };
}

// watch hands over changes and bookmarks until the watch ends.
export async function watch<T extends Item>(path: string, signal: AbortSignal, take: (c: Change<T>) => void): Promise<void> {
  const r = await send(path, { signal });
  if (!r.body) return;
  for await (const line of lines(r.body)) {
    const c = JSON.parse(line) as Change<T>;
    if (c.type === 'ERROR') throw new ApiError(c.object.code ?? 500, 'The watch ended; the list is read again.');
    take(c);
  }
}
