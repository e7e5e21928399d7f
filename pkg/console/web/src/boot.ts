// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What is done before anything is painted: what is secret is taken out of the address, and the theme is chosen. After the first paint,
// what the first view reads is asked for, and the page's own script, which has arrived meanwhile, is run.
import { firstReads, kept } from './api/paths';

// Early is the answer to a request that was sent before somebody asked for it.
export interface Early {
  answer: Promise<Response>;
  end: AbortController;
}

declare global {
  // eslint-disable-next-line no-var
  var platformEarly: Map<string, Early> | undefined;
  // The token with which a person claims what a provider gave for a consent. Only the memory of the page has it.
  // eslint-disable-next-line no-var
  var platformCompletion: string | undefined;
  const APP: string; // the address of the page's own script, from the build
}

// take takes the token out of the address, so that it is in no entry of the history, and no script finds it in the address.
function take(): void {
  const { hash, pathname, search } = window.location;
  const [name, token] = hash.slice(1).split('=');
  if (name !== 'completion' || pathname !== '/console/settings/connectors') return;
  globalThis.platformCompletion = token;
  history.replaceState(history.state, '', pathname + search);
}
take();
window.addEventListener('hashchange', take);

const early = new Map<string, Early>();
globalThis.platformEarly = early;

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

const theme = stored(kept.theme);
const dark = theme === 'dark' || (theme !== 'light' && window.matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.dataset.theme = dark ? 'dark' : 'light';

// ask sends what the first view reads. Its answers arrive while the page's own script is compiled.
function ask(): void {
  const key = stored(kept.key);
  if (!key) return;
  const at = window.location;
  const search = new URLSearchParams(at.search);
  const home = stored(kept.namespace);
  const views = home === null ? [] : firstReads(search.get('ns') || home || 'default', at.pathname, search, at.hash.slice(1));
  for (const path of ['/console/session', ...views]) {
    const end = new AbortController();
    const answer = fetch(path, { headers: { accept: 'application/json', 'x-platform-console': key }, credentials: 'same-origin', cache: 'no-store', signal: end.signal });
    answer.catch(() => undefined); // whoever takes it is told
    early.set(path, { answer, end });
  }
}

const app = APP;
const start = () => {
  ask();
  import(app).catch(() => {
    const main = document.querySelector('main');
    if (main) main.textContent = 'The console could not be loaded. Load the page again.';
  });
};
// A page that nobody sees is not painted.
if (document.visibilityState === 'hidden') start();
else requestAnimationFrame(() => setTimeout(start));
