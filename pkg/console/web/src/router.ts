// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The state of every view is in the URL: the path names the view and its object, the query holds what is selected.
import { signal } from '@preact/signals';

export const base = '/console';

export interface Location {
  path: string; // below /console, such as /tasks/primes
  query: URLSearchParams;
  hash: string; // without #
}

function read(): Location {
  const path = window.location.pathname.slice(base.length).replace(/\/+$/, '') || '/';
  return { path, query: new URLSearchParams(window.location.search), hash: window.location.hash.slice(1) };
}

export const location = signal<Location>(read());

// home is the namespace of addresses that name none: that of the session.
export const home = signal('default');

// namespace is what all views show. Links keep it.
export function namespace(): string {
  return location.value.query.get('ns') || home.value;
}

// Params are what a link adds to the query. Empty values are left out.
export type Params = Record<string, string | undefined>;

// href returns the address of a view, in the namespace that is shown unless params name another one.
export function href(path: string, params: Params = {}, hash = ''): string {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries({ ns: namespace(), ...params })) {
    if (v && !(k === 'ns' && v === home.value)) query.set(k, v);
  }
  const q = query.toString();
  return base + path + (q ? `?${q}` : '') + (hash ? `#${hash}` : '');
}

// taskHref returns the address of a task's run, or of one of its events.
export function taskHref(name: string, seq?: number): string {
  return href(`/tasks/${encodeURIComponent(name)}`, {}, seq ? `seq=${seq}` : '');
}

// go shows an address that href returned.
export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  location.value = read();
}

// set changes parameters of the present view. The change replaces the entry of the history, so Back leaves the view.
export function set(params: Params, hash?: string): void {
  const now = location.peek();
  const all: Params = Object.fromEntries(now.query);
  go(href(now.path, { ...all, ...params }, hash ?? now.hash), true);
}

// startRouter follows links within the console without loading the page again.
export function startRouter(): void {
  window.addEventListener('popstate', () => (location.value = read()));
  window.addEventListener('hashchange', () => (location.value = read()));
  document.addEventListener('click', (e) => {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    const a = e.target instanceof Element ? e.target.closest('a') : null;
    if (!a || a.target || a.origin !== window.location.origin || a.hasAttribute('download')) return;
    if (a.pathname !== base && !a.pathname.startsWith(`${base}/`)) return;
    if (a.pathname.startsWith(`${base}/login`) || a.pathname.startsWith(`${base}/logout`)) return; // the server's own pages
    e.preventDefault();
    const moved = a.pathname !== window.location.pathname;
    go(a.href);
    if (moved) {
      window.scrollTo(0, 0);
      document.getElementById('main')?.focus({ preventScroll: true });
    }
  });
}

// match returns the parameters of a path such as /tasks/:name, or null.
export function match(pattern: string, path: string): Record<string, string> | null {
  const want = pattern.split('/');
  const got = path.split('/');
  if (want.length !== got.length) return null;
  const params: Record<string, string> = {};
  for (const [i, part] of want.entries()) {
    const value = got[i] ?? '';
    if (part.startsWith(':')) {
      try {
        params[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (part !== value) return null;
  }
  return params;
}
