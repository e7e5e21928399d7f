// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The frame of all views: navigation, namespace, theme, and the view itself.
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ended, inNamespace } from '../api/client';
import { useList } from '../api/list';
import { pending } from '../api/pending';
import { login, signOut, user } from '../api/session';
import type { Approval } from '../api/types';
import { goTo, helpOpen } from '../keys';
import { go, home, href, location, match, namespace } from '../router';
import { nextTheme, theme } from '../theme';
import { views } from '../views/views';
import { Help } from './help';
import { Empty } from './states';

for (const v of views) if (v.key && v.nav) goTo(v.key, v.path, v.title);

export function Shell() {
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), document.getElementById('main')?.focus())}>Skip to the content</a>
      <Header />
      {ended.value && !globalThis.platformCompletion && <p class="ended" role="alert">Your session has ended: it was too old, or the server was started again. <a href={login()}>Sign in again</a>, here or in another tab. What you see is not current.</p>}
      <main id="main" tabIndex={-1}>
        <Present />
      </main>
      <Help />
    </>
  );
}

// useInView scrolls the present entries of navigations into view, which are wider than a phone.
function useInView(of: string): void {
  useEffect(() => {
    for (const a of document.querySelectorAll('nav [aria-current]')) {
      const nav = a.closest('nav');
      const [inner, outer] = [a.getBoundingClientRect(), nav?.getBoundingClientRect()];
      if (nav && outer && (inner.right > outer.right || inner.left < outer.left)) nav.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
    }
  }, [of]);
}

function Header() {
  const path = location.value.path;
  useInView(`${path}?${location.value.query.get('tab') ?? ''}`);
  return (
    <header class="top">
      <a class="brand" href={href('/')}>platform</a>
      <nav aria-label="Views">
        {views.filter((v) => v.nav).map((v) => (
          <a key={v.path} href={href(v.path)} aria-current={v.path === path || (v.path !== '/' && path.startsWith(`${v.path}/`)) ? 'page' : undefined}>
            {v.title}
            {v.path === '/approvals' && <Pending />}
          </a>
        ))}
      </nav>
      <form class="namespace" onSubmit={choose}>
        <label for="ns">Namespace</label>
        <input id="ns" name="ns" key={namespace()} defaultValue={namespace()} size={12} spellcheck={false} autocomplete="off" />
      </form>
      <button type="button" class="quiet" onClick={nextTheme} title="Change the theme">{themes[theme.value]}</button>
      <button type="button" class="quiet" onClick={() => (helpOpen.value = true)} aria-label="Keys" title="Keys">?</button>
      {user.value && <button type="button" class="quiet" onClick={() => void signOut()} title={`Signed in as ${user.value}`}>Sign out</button>}
    </header>
  );
}

const themes = { system: 'System', light: 'Light', dark: 'Dark' };

function choose(e: SubmitEvent) {
  e.preventDefault();
  const ns = String(new FormData(e.currentTarget as HTMLFormElement).get('ns') ?? '').trim();
  (document.activeElement as HTMLElement | null)?.blur();
  go(href('/', { ns: ns || home.value }));
}

// Pending counts the approvals that wait for a decision. It is asked for after what the view itself needs.
function Pending() {
  const later = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => (later.value = true), 1000);
    return () => clearTimeout(timer);
  }, []);
  const { items, error } = useList<Approval>(later.value ? inNamespace('approvals') : '', { fieldSelector: 'status.state=pending' }, 0);
  useEffect(() => {
    pending.value = items.value.filter((a) => a.status?.state === 'pending');
  }, [items.value]);
  const n = pending.value.length;
  if (error.value || n === 0) return null;
  return <span class="badge" aria-label={`${n} pending`}>{n}</span>;
}

function Present() {
  const { path } = location.value;
  for (const v of views) {
    const params = match(v.path, path);
    if (params) return <Page key={`${namespace()}/${v.path}/${JSON.stringify(params)}`} title={params.name ?? v.title} view={<v.component params={params} />} />;
  }
  return <Page title="Not found" view={<><h1>Not found</h1><Empty>There is no such page. <a href={href('/')}>Go to what happens now.</a></Empty></>} />;
}

function Page({ title, view }: { title: string; view: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · platform`;
  }, [title]);
  return <>{view}</>;
}
