// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// How views are looked at: in both themes, at the width of a screen and of a phone. SHOTS is the folder for pictures.
import { readFileSync } from 'node:fs';
import { BASE, assert, axe, nodes, shown, signedIn } from './drive.mjs';

export const { SHOTS } = process.env;
export const phone = { width: 390, height: 844 };
const screen = { width: 1280, height: 800 };

// looks returns a part that looks at all views. The values of views are a path, a text that the view shows, and, where that is not
// all, what somebody does then.
export function looks(views) {
  return { views: (b) => look(b, views) };
}

// A look of a page is its name, its theme and its size.
export const light = ['light', 'light', screen];
export const dark = ['dark', 'dark', screen];
const narrow = ['phone', 'light', phone];

async function show(page, [, colorScheme, size]) {
  await page.emulateMedia({ colorScheme });
  await page.setViewportSize(size);
}

// eachLook calls look for each look of a page, which keeps the last one.
export async function eachLook(page, looks, look) {
  for (const l of looks) {
    await show(page, l);
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))); // canvases draw anew
    await look(l[0]);
  }
}

async function look(browser, views) {
  const { page, complaints, close } = await signedIn(browser);
  const broken = [];
  const order = [light, dark, narrow];
  for (const [view, [path, text, act]] of Object.entries(views)) {
    await show(page, order[0]);
    await page.goto(`${BASE}/console${path}`);
    await shown(page, path, text);
    await act?.(page);
    await eachLook(page, order, async (as) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), 0, `${view}, ${as}: wider than the window`);
      assert.ok((await nodes(page)) < 1500, `${view}, ${as}: ${await nodes(page)} nodes`);
      if (await page.locator('.minimap').count()) await page.locator('.minimap canvas').waitFor();
      await page.screenshot({ path: `${SHOTS}/${view}-${as}.png` });
      broken.push(...(await rules(page)).map((r) => `${view}, ${as}: ${r}`));
    });
    order.push(order.shift()); // views are opened in all looks by turns
  }
  assert.deepEqual(broken, []);
  const known = complaints.filter((c) => !/status of 404/.test(c)); // of the task that does not exist, and of results
  assert.deepEqual(known, []);
  await close();
  return `${Object.keys(views).length} views`;
}

// rules returns what breaks a rule of accessibility. The policy of the page keeps scripts out that are not the server's, so the
// rules run in a world of their own.
export async function rules(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'rules' });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, contextId, awaitPromise: true, returnByValue: true });
    assert.ok(!exceptionDetails, JSON.stringify(exceptionDetails));
    return result.value;
  };
  if (!(await evaluate('!!globalThis.axe'))) await evaluate(readFileSync(axe, 'utf8')); // a world lasts as long as its page
  const found = await evaluate("axe.run(document).then((r) => r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`))");
  await session.detach();
  return found;
}
