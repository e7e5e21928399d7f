// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Who looks: the session that the login began.
import { batch, signal } from '@preact/signals';
import { base, home } from '../router';
import { ApiError, ended, get, send } from './client';
import { kept } from './paths';

interface Session {
  user: string;
  namespace: string; // where the views begin
}

export const user = signal('');

// remembered sets the namespace to that of the last session here. It reports whether there is one.
export function remembered(): boolean {
  try {
    home.value = localStorage.getItem(kept.namespace) || home.value;
    return localStorage.getItem(kept.namespace) !== null;
  } catch {
    return false;
  }
}

// signIn finds out whose session it is, and shows the login if there is none. It reports whether the views can be shown.
export async function signIn(): Promise<boolean> {
  try {
    const s = await get<Session>(`${base}/session`);
    batch(() => {
      user.value = s.user;
      home.value = s.namespace || home.value;
    });
    localStorage.setItem(kept.namespace, home.value);
  } catch (e) {
    if (e instanceof ApiError && e.code === 401) {
      if (globalThis.platformCompletion) return true; // the login would lose it; the view says what to do
      window.location.replace(login());
      return false;
    }
    // The views say what is wrong.
  }
  return true;
}

// Who signs out in another tab is signed out here, and who signs in again there goes on here. Another user starts anew, because
// rights and data differ; not so if nobody was known
// here, and the answer of a provider waits for the person.
window.addEventListener('storage', (e) => {
  if (e.key !== kept.key) return;
  if (!e.newValue) ended.value = true;
  if (!e.newValue || !ended.value) return;
  const before = user.value;
  void signIn().then((known) => {
    if (known && user.value !== before && (before || !globalThis.platformCompletion)) window.location.reload();
    else if (known) ended.value = false;
  });
});

// login is the address of the login, which leads back to the present view.
export function login(): string {
  return `${base}/login?next=${encodeURIComponent(window.location.href)}`;
}

export async function signOut(): Promise<void> {
  try {
    await send(`${base}/session`, { method: 'DELETE' });
  } finally {
    try {
      localStorage.removeItem(kept.key);
      localStorage.removeItem(kept.namespace);
    } catch {
      // There was nothing to keep it.
    }
    window.location.assign(`${base}/login`);
  }
}
