// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Chromium logs in at the provider of the server at BASE.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { started } from '../browser.mjs';

const require = createRequire(new URL('../../../pkg/console/web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const { BASE } = process.env;
const browser = await started(chromium);
const native = '/apis/core.platform.ai/v1alpha1/namespaces/team/tasks';
const ask = (page, path) => page.evaluate(async (url) => {
  const r = await fetch(url, { headers: { 'x-platform-console': localStorage.getItem('platform.console.key') ?? 'none' } });
  return { status: r.status, text: await r.text() };
}, path);

// logIn goes through the provider's own pages.
async function logIn(page, subject, next = '') {
  await page.goto(`${BASE}/console/login${next}`);
  await page.click('#provider');
  await page.fill('input[name=login]', subject);
  await page.fill('input[name=password]', 'x');
  await page.click('button[type=submit]');
  await page.getByText('Continue').click();
}

const parts = {
  async 'a person logs in at the provider'(context) {
    const page = await context.newPage();
    let back = '';
    page.on('request', (r) => { if (r.url().includes('/provider/callback')) back = r.url(); });
    await logIn(page, 'ann-1', '?next=/console/approvals');
    await page.waitForURL(`${BASE}/console/approvals`);
    const list = await ask(page, native);
    assert.equal(list.status, 200, list.text);
    assert.match((await ask(page, '/api/v1/auth/whoami')).text, /"username":"ann"/);
    const kept = await page.evaluate(() => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, location.href]));
    assert.ok(!/eyJ/.test(kept), `the page has a token: ${kept}`);
    const cookies = await context.cookies(BASE);
    assert.deepEqual(cookies.filter((c) => c.name.startsWith('platform')).map((c) => [c.httpOnly, c.sameSite]), [[true, 'Strict']]);
    // The answer of the provider is of no use again, here or in another browser.
    for (const c of [context, await browser.newContext()]) {
      const other = await c.newPage();
      await other.goto(back);
      await other.getByText('not begun here').waitFor();
    }
  },

  async 'nobody else is let in'(context) {
    const page = await context.newPage();
    await logIn(page, 'stranger');
    await page.getByText('does not accept you').waitFor();
    assert.ok((await ask(page, native)).status >= 400);
    assert.equal((await context.cookies(BASE)).filter((c) => c.name.startsWith('platform')).length, 0);
  },

  async 'an address gives the page no key and no text'(context) {
    const page = await context.newPage();
    for (const fragment of ['key=x', 'key=x&state=', 'key=x&state=y', 'error=Call+this+number']) {
      await page.goto(`${BASE}/console/ways`);
      await page.goto(`${BASE}/console/login#${fragment}`);
      await page.getByText('not begun here').waitFor();
      assert.equal(await page.evaluate(() => localStorage.getItem('platform.console.key')), null, fragment);
    }
    await logIn(page, 'ann-1');
    await page.waitForURL(`${BASE}/console/`);
    for (const next of ['https://evil.example/', '//evil.example/', 'javascript:alert(1)', '/console/../api/v1/tasks', '\\\\evil.example']) {
      await page.goto(`${BASE}/console/login?next=${encodeURIComponent(next)}`);
      await page.click('#provider'); // which remembers the person
      await page.waitForURL(`${BASE}/console/`);
    }
  },
};

try {
  for (const [name, part] of Object.entries(parts)) {
    const context = await browser.newContext();
    context.setDefaultTimeout(120_000);
    await part(context);
    await context.close();
    console.log(`ok: ${name}`);
  }
} catch (e) {
  console.log(`FAILED: ${e.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
