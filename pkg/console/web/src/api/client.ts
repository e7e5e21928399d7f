// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Requests to the native API, which both hosts serve under the same paths. The session's cookie, which scripts cannot read,
// and a key that the login leaves to this origin authenticate them together; the page never holds a credential.
import { signal } from '@preact/signals';
import type { Early } from '../boot';
import { namespace } from '../router';
import { visible } from '../ui/visible';
import { kept, resource } from './paths';

export { group, query } from './paths';
export const apiVersion = 'core.platform.ai/v1alpha1';

// key returns the key of the session. Any other page of this machine lacks it, although it may share the cookie.
function key(): string {
  try {
    return localStorage.getItem(kept.key) ?? 'none';
  } catch {
    return 'none';
  }
}

// ended is true after the server has refused the session: it was too old, or the server has been started again. What is shown
// stays, and goes on when somebody signs in again.
export const ended = signal(false);

// ApiError is an answer other than success. Its message is the server's, or says what happened in its place.
export class ApiError extends Error {
  constructor(
    readonly code: number, // the HTTP status; 0 if there was no answer
    message: string,
    readonly reason = '',
  ) {
    super(message);
  }
}

export interface Options {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown; // sent as JSON
  accept?: string;
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
}

// inNamespace returns the path of a resource in the namespace that is shown.
export function inNamespace(...parts: string[]): string {
  return resource(namespace(), ...parts);
}

// early are answers to requests that boot.ts sent before this script arrived. They go to whoever sends the same read within the
// next seconds.
const early = globalThis.platformEarly ?? new Map<string, Early>();
setTimeout(() => {
  for (const { end } of early.values()) end.abort();
  early.clear();
}, 5000);

function taken(path: string, signal: AbortSignal | undefined): Promise<Response> | undefined {
  const known = early.get(path);
  if (!known || signal?.aborted) return undefined;
  early.delete(path);
  signal?.addEventListener('abort', () => known.end.abort(), { once: true });
  return known.answer;
}

// send returns the answer to a request, or throws an ApiError.
export async function send(path: string, o: Options = {}): Promise<Response> {
  const known = o.method || o.accept || o.headers ? undefined : taken(path, o.signal);
  const headers: Record<string, string> = { accept: o.accept ?? 'application/json', 'x-platform-console': key(), ...o.headers };
  const init: RequestInit = { method: o.method ?? 'GET', headers, credentials: 'same-origin', cache: 'no-store' };
  if (o.body !== undefined) {
    headers['content-type'] ??= 'application/json';
    init.body = JSON.stringify(o.body);
  }
  if (o.signal) init.signal = o.signal;
  let r: Response;
  try {
    r = await (known ?? fetch(path, init));
  } catch (e) {
    if (o.signal?.aborted) throw e;
    throw new ApiError(0, 'The server does not answer.');
  }
  if (!r.ok) throw await failure(r);
  return r;
}

async function failure(r: Response): Promise<ApiError> {
  let message = '';
  let reason = '';
  try {
    const body = (await r.json()) as { message?: string; reason?: string; error?: { message?: string } };
    message = body.message ?? body.error?.message ?? '';
    reason = body.reason ?? '';
  } catch {
    // An answer that is not JSON says no more than its code.
  }
  if (r.status === 401) ended.value = true;
  if (r.status === 401) message = 'You are not signed in, or your session has ended.';
  return new ApiError(r.status, message || `The server answered ${r.status}.`, reason);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, { signal })).json()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  return (await (await send(path, { method: 'POST', body, signal })).json()) as T;
}

// change merges a part of an object into it.
export async function change(path: string, part: unknown): Promise<void> {
  await send(path, { method: 'PATCH', body: part, headers: { 'content-type': 'application/merge-patch+json' } });
}

// remove deletes an object, unless another one has its name by now.
export async function remove(path: string, uid: string | undefined): Promise<void> {
  await send(path, { method: 'DELETE', body: { apiVersion: 'v1', kind: 'DeleteOptions', ...(uid ? { preconditions: { uid } } : {}) } });
}

// aborted reports whether an error only says that nobody waits for the answer any more.
export function aborted(e: unknown): boolean {
  return e instanceof DOMException && e.name === 'AbortError';
}

// explain returns the text of an error. A server repeats in it what others wrote.
export function explain(e: unknown): string {
  return visible(e instanceof Error ? e.message : String(e));
}
