// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the scripts have in common: a browser that is signed in at BASE, and whose complaints fail the script.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { started } from '../browser.mjs';

const require = createRequire(new URL('../../../pkg/console/web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
export const axe = require.resolve('axe-core/axe.min.js');
export { assert };

export const { BASE, TOKEN, MORE } = process.env;

let crashed = false; // a page did since the part began

// run opens a browser, calls parts in order, and prints a line for each. A part is called again if the browser died under it, as
// Chromium now and then does on a busy machine, which says nothing about a page.
export async function run(parts) {
  let browser = await started(chromium);
  try {
    for (const [name, part] of Object.entries(parts)) {
      for (let left = 2; ; left--) {
        try {
          const said = await part(browser);
          console.log(`ok: ${name}${said ? `: ${said}` : ''}`);
          break;
        } catch (e) {
          if (browser.isConnected() && !crashed || left === 0) throw e;
          crashed = false;
          await browser.close();
          console.error(`Chromium died in ${name}, which begins again: ${String(e).split('\n')[0]}`);
          browser = await started(chromium);
        }
      }
    }
  } catch (e) {
    console.log(`FAILED: ${e.stack} ${e.actual ? JSON.stringify(e.actual) : ''}`);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}

// opened returns an empty page. complaints are errors, refusals of the policy, and requests to elsewhere.
export async function opened(browser, options = {}) {
  const { base = BASE, ...more } = options; // base is the address of the page
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...more });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const complaints = [];
  page.on('crash', () => (crashed = true));
  page.on('pageerror', (e) => complaints.push(e.stack));
  page.on('console', (m) => m.type() === 'error' && complaints.push(m.text()));
  page.on('dialog', (d) => complaints.push(`dialog: ${d.message()}`));
  page.on('request', (r) => {
    if (!r.url().startsWith(base) && !r.url().startsWith('data:')) complaints.push(`asked ${r.url()}`);
  });
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
  return { page, complaints, close: () => context.close() };
}

// signedIn returns a page after the login with a token.
export async function signedIn(browser, options = {}, token = TOKEN) {
  const { page, complaints, close } = await opened(browser, options);
  await page.goto(`${BASE}/console/login`);
  await page.fill('#token', token);
  await page.click('button[type=submit]');
  await page.waitForSelector('header.top form');
  return { page, complaints, close };
}

// entered returns a page after a link of platform console was followed.
export async function entered(browser, link) {
  const { page, complaints, close } = await opened(browser, { base: new URL(link).origin });
  await page.goto(link);
  await page.waitForSelector('header.top form');
  return { page, complaints, close };
}

// went presses g and a letter until the view is there: a busy page may see the letter too late.
export async function went(page, letter, path) {
  do {
    await page.keyboard.press('g');
    await page.keyboard.press(letter);
  } while (!(await page.evaluate((p) => location.pathname === p, `/console${path}`)));
}

// shown waits for a text on a page.
export async function shown(page, path, text) {
  try {
    await page.getByText(text).filter({ visible: true }).first().waitFor();
  } catch {
    throw new Error(`${path} does not show ${text}, but: ${(await page.evaluate(() => document.body.innerText)).slice(0, 1500)}`);
  }
}

export const nodes = (page) => page.evaluate(() => document.querySelectorAll('*').length);
