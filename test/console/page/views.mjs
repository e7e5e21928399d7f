// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Every view shows its data in both themes and at a phone's width.
import { BASE, assert, run, signedIn } from './drive.mjs';
import { SHOTS, looks, rules } from './look.mjs';

const { APPROVAL } = process.env;
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
  counted: ['/sessions/talk', 'Events of its tasks'],
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

// What lists and objects show in place of their data. Each is looked at in both themes.
const lists = { now: '/', tasks: '/tasks', approvals: '/approvals', sessions: '/sessions', usage: '/usage', catalogue: '/catalogue', proposals: '/memory', memories: '/memory?tab=memories' };
const objects = { run: '/tasks/plain', transcript: '/tasks/plain?tab=transcript', trace: '/tasks/plain?tab=trace', session: '/sessions/talk', tree: '/tree/plain', approval: `/approvals/${APPROVAL}`, entry: '/catalogue/agents/helper', compare: '/compare?a=plain&b=long' };

async function state(browser, name, views, namespace, selector) {
  const { page, close } = await signedIn(browser);
  const broken = [];
  if (name === 'loading') await page.route('**/apis/core.platform.ai/**', () => undefined); // the server takes its time
  for (const [view, path] of Object.entries(views)) {
    await page.goto(`${BASE}/console${path}${path.includes('?') ? '&' : '?'}ns=${namespace}`);
    try {
      await page.locator(selector).first().waitFor();
    } catch {
      throw new Error(`${view} is not ${name}, but: ${(await page.evaluate(() => document.body.innerText)).slice(0, 500)}`);
    }
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${SHOTS}/${view}-${name}-${colorScheme}.png` });
      broken.push(...(await rules(page)).map((r) => `${view}, ${colorScheme}: ${r}`));
    }
  }
  assert.deepEqual(broken, [], name);
  await close();
  return `${Object.keys(views).length} views`;
}

await run({
  ...looks(views),
  'empty': (b) => state(b, 'empty', lists, 'empty', 'main .state:not([role])'),
  'loading': (b) => state(b, 'loading', { ...lists, ...objects }, 'team', 'main .state[role=status]'),
  'refused': (b) => state(b, 'refused', { ...lists, ...objects }, 'default', 'main .problem'),
  'keys': async (b) => {
    const { page, close } = await signedIn(b);
    await page.getByText('waiting for a decision').first().waitFor();
    // What the file shows until the script has run is what the script shows.
    const links = (d) => [...d.querySelectorAll('header.top nav a')].map((a) => `${a.firstChild.data} ${a.getAttribute('href')}`.replace(/\?.*/, ''));
    const [html, now] = [await (await fetch(`${BASE}/console/`)).text(), await page.evaluate(`(${links})(document)`)];
    assert.deepEqual([...html.matchAll(/<a href="([^"]*)">([^<]*)</g)].map(([, to, text]) => `${text} ${to}`), now);
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
