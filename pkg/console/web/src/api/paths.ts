// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The addresses of requests. What is sent before the page's own script has arrived must be named alike there and in the views,
// so this file needs nothing of either.

export const group = '/apis/core.platform.ai/v1alpha1';

// The names under which this browser keeps what it knows of the session, and the theme that somebody chose.
export const kept = { key: 'platform.console.key', namespace: 'platform.console.namespace', theme: 'platform-theme' };

// resource returns the path of a resource in a namespace.
export function resource(namespace: string, ...parts: string[]): string {
  return [group, 'namespaces', encodeURIComponent(namespace), ...parts.map(encodeURIComponent)].join('/');
}

// query appends parameters that are set.
export function query(path: string, params: Record<string, string | number | boolean | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== '') q.set(k, String(v));
  const s = q.toString();
  return s ? `${path}?${s}` : path;
}

// whole returns the request that has all items of a list and keeps them current.
export function whole(path: string, params: Record<string, string | undefined>): string {
  return query(path, { ...params, watch: true, allowWatchBookmarks: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' });
}

// named selects one object.
export const named = (name: string) => ({ fieldSelector: `metadata.name=${name}` });

// seqIn returns the event that the fragment of an address names; 0 if it names none.
export function seqIn(hash: string): number {
  const n = Number(/^seq=(\d{1,15})$/.exec(hash)?.[1] ?? 0);
  return Number.isSafeInteger(n) ? n : 0;
}

const firstly = 80; // events of the first pages

// firstEvents returns the requests for what a view of a task's events begins with: those around one event, or, for 0, both ends.
export function firstEvents(events: string, seq: number): string[] {
  if (seq) return [query(events, { around: seq, limit: firstly })];
  return [query(events, { order: 'desc', limit: firstly }), query(events, { after: 0, limit: firstly })];
}

// firstReads returns what the view of an address reads first, as far as it is known without the views.
export function firstReads(namespace: string, path: string, search: URLSearchParams, hash: string): string[] {
  const name = /^\/console\/tasks\/([^/]+)$/.exec(path)?.[1];
  if (!name) return [];
  let task: string;
  try {
    task = decodeURIComponent(name);
  } catch {
    return [];
  }
  const events = search.get('tab') ? [] : firstEvents(resource(namespace, 'tasks', task, 'events'), seqIn(hash));
  return [whole(resource(namespace, 'tasks'), named(task)), ...events];
}
