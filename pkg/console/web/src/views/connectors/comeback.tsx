// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What somebody is told who comes back from a provider. The answer of the provider is parked at the server until the person for whom it
// was asked claims it with the completion token, which boot.ts took out of the address. The token is kept in the memory of this page and
// nowhere else, so another tab, a reload or the page of the login do not find it. Somebody who is not signed in can do so in another tab,
// and this one goes on; otherwise the person connects again, which costs a click.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, ended, explain } from '../../api/client';
import { complete } from '../../api/connector';
import { user } from '../../api/session';
import { base, go, href, location } from '../../router';
import { Text } from '../../ui/text';
import { because } from './reasons';

export const path = '/settings/connectors';

interface Said {
  text: string;
  over?: boolean; // the address is of no use any more
  good?: boolean; // an account was linked
  bad?: boolean;
  login?: boolean; // it goes on when somebody has signed in
  retry?: boolean; // it can be tried again
}

// These are not of the component: another namespace, which a login may bring, makes the view anew.
const said = signal<Said | null>(null);
let sending = false;

// outcome is what came of the last consent.
export const outcome = said;

function forget(): void {
  globalThis.platformCompletion = undefined;
}

// over says how a consent ended.
function over(s: Said): void {
  forget();
  said.value = { ...s, over: true };
}

// comeBack does what the address says. It is called again when somebody has signed in.
async function comeBack(query: URLSearchParams): Promise<void> {
  const status = query.get('status');
  const name = query.get('connection') ?? '';
  const completion = globalThis.platformCompletion;
  if (sending) return;
  if (status === 'error') return over({ bad: true, text: `Nothing was linked. ${because(query.get('reason') ?? '')}` });
  if (status !== 'pending') return forget();
  if (!completion || !name) return over({ bad: true, text: 'Nothing was linked: this page does not have the answer of the provider any more, because it was loaded again, or because you signed in here meanwhile. Connect again.' });
  sending = true;
  said.value = { text: 'Linking your account …' };
  try {
    await complete(name, completion);
    over({ good: true, text: 'Your account is linked.' });
  } catch (e) {
    const code = e instanceof ApiError ? e.code : 0;
    if (code === 401) said.value = { login: true, text: '' };
    else if (code === 0 || code === 429 || code === 500 || code === 503) said.value = { bad: true, retry: true, text: `The account is not linked yet. ${explain(e)}` };
    else if (code === 404) over({ bad: true, text: 'Nothing was linked: the consent was begun by another person, or the connection was removed. If you began it, sign in as yourself and connect again. If somebody sent you here, do nothing.' });
    else over({ bad: true, text: `The answer of the provider was not used. ${explain(e)}` });
  } finally {
    sending = false;
  }
}

export function ComeBack() {
  const { query } = location.value;
  const out = ended.value;
  useEffect(() => {
    if (!out || !said.peek()?.login) void comeBack(query);
  }, [query, out]);
  const s = said.value;
  const who = user.value; // the login leads back to the address, which says the same again then
  useEffect(() => {
    if (s?.over && who) go(href(path), true);
  }, [s, who]);
  useEffect(() => () => {
    if (location.peek().path === path) return; // it is made anew
    said.value = null;
    forget();
  }, []);
  if (!s) return null;
  if (s.login) return <p class="notice" role="alert">You are not signed in, so your account is not linked yet. <a href={`${base}/login?next=${encodeURIComponent(base + path)}`} target="_blank" rel="noopener">Sign in in another tab</a> within 10 minutes, and this one goes on. If you sign in here or load the page again, you have to connect again.</p>;
  return (
    <>
      <p class={s.bad ? 'notice bad' : 'notice'} role={s.bad ? 'alert' : 'status'}><Text>{s.text}</Text></p>
      {s.retry && <p><button type="button" onClick={() => void comeBack(location.peek().query)}>Try again</button></p>}
    </>
  );
}
