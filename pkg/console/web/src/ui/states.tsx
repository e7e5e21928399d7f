// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a view shows in place of its data, in words.
import type { ComponentChildren } from 'preact';
import { ApiError, explain } from '../api/client';
import { login } from '../api/session';

export function Loading({ what }: { what: string }) {
  return <p class="state" role="status">Loading {what} …</p>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="state">{children}</p>;
}

// Failure explains an error, and says what can be done about it.
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  const code = error instanceof ApiError ? error.code : -1;
  return (
    <div class="state problem" role="alert">
      <p>{explain(error)}</p>
      {code === 401 && <p><a href={login()}>Sign in</a></p>}
      {code === 403 && <p class="muted">Your role does not permit this. Whoever administers the namespace can change that.</p>}
      {code === 0 && <p class="muted">The page tries again by itself.</p>}
      {retry && code !== 401 && code !== 403 && <p><button type="button" onClick={retry}>Try again</button></p>}
    </div>
  );
}

// Notice is a line above data that is not current.
export function Notice({ error }: { error: unknown }) {
  if (!error) return null;
  return <p class="notice" role="status">Not current: {explain(error)}</p>;
}
