// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Who looks: the session that the login began.
import { signal } from '@preact/signals';
import { base, home } from '../router';
import { ApiError, get, send } from './client';

interface Session {
  user: string;
  namespace: string; // where the views begin
}

export const user = signal('');

// signIn finds out whose session it is, and shows the login if there is none. It reports whether the views can be shown.
export async function signIn(): Promise<boolean> {
  try {
    const s = await get<Session>(`${base}/session`);
    user.value = s.user;
    home.value = s.namespace || home.value;
  } catch (e) {
    if (e instanceof ApiError && e.code === 401) {
      window.location.replace(login());
      return false;
    }
    // The views say what is wrong.
  }
  return true;
}

// login is the address of the login, which leads back to the present view.
export function login(): string {
  return `${base}/login?next=${encodeURIComponent(window.location.href)}`;
}

export async function signOut(): Promise<void> {
  try {
    await send(`${base}/session`, { method: 'DELETE' });
  } finally {
    try {
      localStorage.removeItem('platform.console.key');
    } catch {
      // There was nothing to keep it.
    }
    window.location.assign(`${base}/login`);
  }
}
