// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// How views are looked at: in both themes, at the width of a screen and of a phone. SHOTS is the folder for pictures.
import { readFileSync } from 'node:fs';
import { BASE, assert, axe, nodes, shown, signedIn } from './drive.mjs';

export const { SHOTS } = process.env;
export const phone = { width: 390, height: 844 };
const sizes = { light: { colorScheme: 'light' }, dark: { colorScheme: 'dark' }, phone: { colorScheme: 'light', viewport: phone } };

// looks returns a part for each theme and size. The values of views are a path, a text that the view shows, and, where that is not all,
// what somebody does then.
export function looks(views) {
  return Object.fromEntries(Object.entries(sizes).map(([name, options]) => [name, (b) => look(b, name, options, views)]));
}

async function look(browser, name, options, views) {
  const { page, complaints, close } = await signedIn(browser, options);
  const broken = [];
  for (const [view, [path, text, act]] of Object.entries(views)) {
    await page.goto(`${BASE}/console${path}`);
    await shown(page, path, text);
    await act?.(page);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), 0, `${view} is wider than the window`);
    assert.ok((await nodes(page)) < 1500, `${view} has ${await nodes(page)} nodes`);
    if (await page.locator('.minimap').count()) await page.locator('.minimap canvas').waitFor();
    await page.screenshot({ path: `${SHOTS}/${view}-${name}.png` });
    broken.push(...(await rules(page)).map((r) => `${view}: ${r}`));
  }
  assert.deepEqual(broken, [], name);
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
  await evaluate(readFileSync(axe, 'utf8'));
  const found = await evaluate("axe.run(document).then((r) => r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`))");
  await session.detach();
  return found;
}
