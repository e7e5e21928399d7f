// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Every view shows its data in both themes and at a phone's width.
import { BASE, assert, opened, run, signedIn, went } from './drive.mjs';
import { APPROVAL, CONVERSATION, views } from './where.mjs';
import { SHOTS, dark, eachLook, light, looks, phone, rules } from './look.mjs';

// What lists and objects show in place of their data. Each is looked at in both themes.
const lists = { now: '/', tasks: '/tasks', approvals: '/approvals', sessions: '/sessions', usage: '/usage', catalogue: '/catalogue', proposals: '/memory', memories: '/memory?tab=memories', monitors: '/monitors', gateways: '/gateways', received: '/gateways?tab=events', 'sent-back': '/gateways?tab=deliveries' };
const objects = { run: '/tasks/plain', transcript: '/tasks/plain?tab=transcript', trace: '/tasks/plain?tab=trace', session: '/sessions/talk', tree: '/tree/plain', approval: `/approvals/${APPROVAL}`, entry: '/catalogue/agents/helper', monitor: '/monitors/shop', monitored: '/monitors/shop/shop.pr-7', gateway: '/gateways/chat', conversation: `/gateways/chat/${CONVERSATION}`, compare: '/compare?a=plain&b=long' };

async function login(browser) {
  const { page, complaints, close } = await opened(browser);
  const broken = [];
  await eachLook(page, [light, dark, ['phone', 'dark', phone]], async (as) => {
    await page.goto(`${BASE}/console/login`);
    await page.locator('#token').waitFor();
    await page.screenshot({ path: `${SHOTS}/login-${as}.png` });
    broken.push(...(await rules(page)).map((r) => `login, ${as}: ${r}`));
    await page.fill('#token', 'of nobody');
    await page.click('button[type=submit]');
    await page.locator('#status:not(:empty)').waitFor();
    await page.screenshot({ path: `${SHOTS}/login-refused-${as}.png` });
    broken.push(...(await rules(page)).map((r) => `login refused, ${as}: ${r}`));
  });
  assert.deepEqual(broken, []);
  assert.deepEqual(complaints.filter((c) => !/status of 40[13]/.test(c)), []);
  await close();
}

const answers = {
  loading: () => undefined, // the server takes its time
  broken: (r) => r.fulfill({ status: 503, contentType: 'application/json', body: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the store is not ready: the disk is full","reason":"ServiceUnavailable","code":503}' }),
  ended: (r) => r.fulfill({ status: 401, contentType: 'application/json', body: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}' }),
};

async function state(browser, name, views, namespace, selector) {
  const { page, close } = await signedIn(browser);
  const broken = [];
  const answer = answers[name];
  if (answer) await page.route('**/apis/core.platform.ai/**', answer);
  for (const [view, path] of Object.entries(views)) {
    await page.goto(`${BASE}/console${path}${path.includes('?') ? '&' : '?'}ns=${namespace}`);
    try {
      await page.locator(selector).first().waitFor();
    } catch {
      throw new Error(`${view} is not ${name}, but: ${(await page.evaluate(() => document.body.innerText)).slice(0, 500)}`);
    }
    await eachLook(page, [['phone', 'dark', phone], light], async (as) => {
      await page.screenshot({ path: `${SHOTS}/${view}-${name}-${as}.png` });
      broken.push(...(await rules(page)).map((r) => `${view}, ${as}: ${r}`));
      if (await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth)) broken.push(`${view}, ${as}: wider than the window`);
    });
  }
  assert.deepEqual(broken, [], name);
  await close();
  return `${Object.keys(views).length} views`;
}

await run({
  ...looks(views),
  login,
  'empty': (b) => state(b, 'empty', lists, 'empty', 'main .state:not([role])'),
  'loading': (b) => state(b, 'loading', { ...lists, ...objects }, 'team', 'main .state[role=status]'),
  'broken': (b) => state(b, 'broken', { ...lists, run: objects.run, approval: objects.approval, compare: objects.compare }, 'team', 'main .problem'),
  'ended': (b) => state(b, 'ended', { ...lists, run: objects.run }, 'team', 'main .problem'),
  'refused': (b) => state(b, 'refused', { ...lists, ...objects }, 'default', 'main .problem'),
  'keys': async (b) => {
    const { page, close } = await signedIn(b);
    await page.getByText('waiting for a decision').first().waitFor();
    // What the file shows until the script has run is what the script shows.
    const links = (d) => [...d.querySelectorAll('header.top nav a')].map((a) => `${a.firstChild.data} ${a.getAttribute('href')}`.replace(/\?.*/, ''));
    const [html, now] = [await (await fetch(`${BASE}/console/`)).text(), await page.evaluate(`(${links})(document)`)];
    assert.deepEqual([...html.matchAll(/<a href="([^"]*)">([^<]*)</g)].map(([, to, text]) => `${text} ${to}`), now);
    await went(page, 't', '/tasks');
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
    const focused = (text) => page.waitForFunction((t) => document.activeElement.innerText?.includes(t), text);
    await page.goto(`${BASE}/console/tasks/plain?tab=transcript`);
    await page.getByText('failure 9').first().waitFor();
    await page.keyboard.press('j');
    await focused('Part 0');
    await page.keyboard.press('j');
    await focused('Part 1');
    await page.keyboard.press(']');
    await focused('failure 9');
    await page.keyboard.press('k');
    await focused('Part 8');
    await page.goto(`${BASE}/console/tasks/plain?tab=transcript&after=30`); // the address holds the page
    await page.getByText('failure 39').first().waitFor();
    assert.equal(await page.getByText('failure 9', { exact: true }).count(), 0);
    await page.getByRole('button', { name: 'Earlier' }).click();
    await page.getByText('failure 9').first().waitFor();
    await page.waitForURL('**before=31*');
    await page.goto(`${BASE}/console/compare?a=plain&b=long`);
    await page.getByText('First difference').waitFor();
    await page.keyboard.press('j');
    await focused('Part 0');
    for (const [path, label] of [['/catalogue', 'Find among agents'], ['/memory?tab=memories', 'Find a memory']]) {
      await page.goto(`${BASE}/console${path}`);
      await page.getByLabel(label).waitFor();
      await page.keyboard.press('/');
      await page.waitForFunction(() => document.activeElement.type === 'search');
    }
    await page.goto(`${BASE}/console/memory`);
    await page.getByText('Staging is rebuilt at night').first().waitFor();
    await page.keyboard.press('j');
    await focused('Staging');
    await close();
  },
});
