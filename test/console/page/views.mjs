// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Every view shows its data in both themes and at a phone's width. SHOTS, if set, is a folder for pictures.
import { BASE, assert, axe, nodes, run, shown, signedIn } from './drive.mjs';

const { APPROVAL, SHOTS } = process.env;
const views = {
  now: ['/', 'waiting for a decision'],
  tasks: ['/tasks', 'plain'],
  run: ['/tasks/plain#seq=5', 'Part 4'],
  failures: ['/tasks/plain?show=failures', 'failure 9'],
  transcript: ['/tasks/plain?tab=transcript', 'Words'],
  trace: ['/tasks/plain?tab=trace', 'no model request'],
  result: ['/tasks/plain?tab=result', 'no result yet'],
  artifacts: ['/tasks/plain?tab=artifacts', 'no artifacts'],
  log: ['/tasks/plain?tab=log', 'log'],
  yaml: ['/tasks/plain?tab=yaml', 'kind: Task'],
  approvals: ['/approvals', 'remove the old files'],
  approval: [`/approvals/${APPROVAL}`, 'rm -r old'],
  tree: ['/tree/plain', 'delegated nothing'],
  sessions: ['/sessions', 'talk'],
  session: ['/sessions/talk', 'Nothing of note'],
  chat: ['/chat', 'Ask for something to be done'],
  usage: ['/usage', 'No model was asked'],
  budgets: ['/usage?by=model&period=7d', 'Budgets'],
  catalogue: ['/catalogue', 'helper'],
  providers: ['/catalogue?kind=providers', 'vendor'],
  entry: ['/catalogue/agents/helper', 'Be brief.'],
  proposals: ['/memory', 'Staging is rebuilt at night'],
  memories: ['/memory?tab=memories', 'Deployments are on Tuesdays'],
  compare: ['/compare?a=plain&b=long', 'They differ from the first step on'],
  missing: ['/tasks/nobody', 'There is no task of this name'],
  nowhere: ['/no/such/page', 'There is no such page'],
};

async function look(browser, name, options) {
  const { page, complaints, close } = await signedIn(browser, options);
  const broken = [];
  for (const [view, [path, text]] of Object.entries(views)) {
    await page.goto(`${BASE}/console${path}`);
    await shown(page, path, text);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), 0, `${view} is wider than the window`);
    assert.ok((await nodes(page)) < 1500, `${view} has ${await nodes(page)} nodes`);
    if (SHOTS) await page.screenshot({ path: `${SHOTS}/${view}-${name}.png` });
    // The policy of the page keeps scripts out that are not the server's, so the rules run in a world of their own.
    broken.push(...(await rules(page)).map((r) => `${view}: ${r}`));
  }
  assert.deepEqual(broken, [], name);
  const known = complaints.filter((c) => !/status of 404/.test(c)); // of the task that does not exist, and of results
  assert.deepEqual(known, []);
  await close();
  return `${Object.keys(views).length} views`;
}

async function rules(page) {
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'rules' });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', { expression, contextId, awaitPromise: true, returnByValue: true });
    assert.ok(!exceptionDetails, JSON.stringify(exceptionDetails));
    return result.value;
  };
  const { readFileSync } = await import('node:fs');
  await evaluate(readFileSync(axe, 'utf8'));
  const found = await evaluate("axe.run(document).then((r) => r.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).slice(0, 3).join(' ')}`))");
  await session.detach();
  return found;
}

await run({
  'light': (b) => look(b, 'light', { colorScheme: 'light' }),
  'dark': (b) => look(b, 'dark', { colorScheme: 'dark' }),
  'phone': (b) => look(b, 'phone', { colorScheme: 'light', viewport: { width: 390, height: 844 } }),
  'keys': async (b) => {
    const { page, close } = await signedIn(b);
    await page.getByText('waiting for a decision').first().waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.waitForURL('**/console/tasks');
    await page.getByRole('link', { name: 'plain' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('plain');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/tasks/plain');
    await page.locator('.line .what').first().waitFor();
    await page.keyboard.press('Home');
    await page.waitForURL('**#seq=1');
    await page.keyboard.press('j');
    await page.waitForURL('**#seq=2');
    await page.keyboard.press(']');
    await page.waitForURL('**#seq=10');
    await page.keyboard.press(']');
    await page.waitForURL('**#seq=20');
    await page.keyboard.press('[');
    await page.waitForURL('**#seq=10');
    await page.getByText('failure 9').first().waitFor();
    await page.keyboard.press('?');
    await page.getByText('Next failure').first().waitFor();
    await page.keyboard.press('Escape');
    await page.reload(); // the address holds what was selected
    await page.locator('.line[aria-selected=true]', { hasText: 'failure 9' }).waitFor();
    await close();
  },
});
