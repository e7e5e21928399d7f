// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Gateways: conversations as they go on, what was not delivered and why, and what somebody may do about it. CONTROL is the address of what
// writes in the chat system, and has its adapter misbehave.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';

const { HALF, HOSTILE, CONTROL } = process.env;

async function ask(path, params = {}) {
  const r = await fetch(`${CONTROL}/${path}?${new URLSearchParams(params)}`);
  assert.equal(r.status, 200, path);
  return r.text();
}

let written = 0;

// say has somebody write in a thread.
const say = (thread, text, more = {}) => ask('say', { id: `e-${++written}`, thread, text, sender: 'ada', name: 'Ada', ...more });
const adapter = (fault = '') => ask('adapter', { fault });
const said = async (thread) => JSON.parse(await ask('said', { thread })) ?? [];

async function on(browser, path, act, token) {
  const { page, complaints, close } = await signedIn(browser, {}, token);
  await page.goto(`${BASE}/console${path}`);
  await act(page);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 404/.test(c)), []); // what a task has not made
}

const row = (page, text) => page.locator('tbody tr', { hasText: text });
const record = (page, text) => page.locator('article', { hasText: text });
const buttons = (page) => page.locator('article button:visible').allInnerTexts();

// told waits until a part of a page says all of some texts.
async function told(part, ...all) {
  for (const text of all) {
    try {
      await part.filter({ hasText: text }).first().waitFor();
    } catch {
      throw new Error(`no ${text} in ${await part.allInnerTexts()}`);
    }
  }
}

async function harmless(page, path) {
  assert.equal(await page.evaluate(() => window.pwned), undefined, path);
  assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script, main iframe, main svg, main a:not([href^="/console"])').length), 0, path);
  assert.ok(!/\u202e/.test(await page.evaluate(() => document.body.innerText)), `${path}: a character that turns the text around`);
}

await run({
  'what is there': (b) => on(b, '/gateways', async (page) => {
    await told(row(page, 'chat'), 'Ready', 'Connected', 'stand-in', 'https://127.0.0.1:', 'ago');
    await page.getByLabel('Find a gateway').fill('no such gateway');
    await shown(page, 'another name', 'No gateway matches');
    await page.getByLabel('Find a gateway').fill('stand-in');
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/gateways/chat');
    await shown(page, 'no event', 'Nobody has written anything yet');
    await page.keyboard.press('3');
    await shown(page, 'no delivery', 'Nothing was answered yet');
    await page.keyboard.press('4');
    await told(row(page, 'room'), 'talker', 'thread', 'Ready');
    await page.keyboard.press('5');
    await shown(page, 'yaml', 'kind: Gateway');
  }),
  'a conversation goes on': (b) => on(b, '/gateways/chat', async (page) => {
    await shown(page, 'no event', 'Nobody has written anything yet');
    await say('t1', 'hello');
    await told(row(page, 't1 · room · bot'), 'ada: hello', 'Completed');
    await row(page, 't1').getByRole('link').click();
    await page.waitForURL('**/console/gateways/chat/gateway-session-*');
    await told(record(page, 'ada'), 'hello', 'Completed', 'shown as “Ada”, unverified');
    await told(record(page, 'You said: hello'), 'Answer', 'Delivered', '1 of 10 times', 'm-1');
    await say('t1', 'and once more', { sender: 'bob', name: '' });
    await told(record(page, 'You said: and once more'), 'Delivered');
    assert.match(await page.locator('article').first().innerText(), /^bob/); // the newest is first
    assert.equal(await record(page, 'bob').filter({ hasText: 'shown as' }).count(), 0);
    await say('t2', 'elsewhere');
    await page.goBack();
    await told(row(page, 't2 · room'), 'ada: elsewhere', 'Completed');
    assert.match(await page.locator('tbody tr').first().innerText(), /t2/);
    await row(page, 't1').getByRole('link').click();
    await record(page, 'hello').first().waitFor();
    assert.equal(await record(page, 'elsewhere').count(), 0);
    await record(page, 'bob').locator('a[href^="/console/tasks/gw-"]').click();
    await page.waitForURL('**/console/tasks/gw-*');
    await shown(page, 'the task', 'Succeeded');
  }),
  'a dead letter': (b) => on(b, '/gateways/chat?tab=deliveries&show=dead', async (page) => {
    await shown(page, 'none', 'None of the deliveries is what you look for');
    await adapter('refuses');
    await say('t3', 'undeliverable');
    await told(record(page, 'You said: undeliverable'), 'Dead lettered', 'Not deliverable', '1 of 10 times');
    assert.deepEqual(await buttons(page), ['Retry']);
    await adapter();
    await page.getByRole('button', { name: 'Retry' }).click(); // nothing was posted, so nothing is asked
    await record(page, 'undeliverable').waitFor({ state: 'detached' });
    await page.getByLabel('Show').selectOption('done');
    await told(record(page, 'You said: undeliverable'), 'Delivered', '1 time, last by system:serviceaccount:default:ann');
    assert.deepEqual(await said('t3'), ['You said: undeliverable']);
  }),
  'what may have been posted': (b) => on(b, '/gateways?tab=deliveries&show=dead', async (page) => {
    await adapter('is mute');
    await say('t4', 'perhaps');
    await told(record(page, 'You said: perhaps'), 'Dead lettered', 'It may have been posted: it was sent, and no answer came.', '2 of 10 times');
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByText('Look into the conversation first').waitFor();
    await page.keyboard.press('Escape'); // nothing was asked for
    await page.getByRole('button', { name: 'Retry' }).waitFor();
    await adapter();
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByText('Send it once more?').waitFor();
    await page.keyboard.press('Enter');
    await record(page, 'perhaps').waitFor({ state: 'detached' });
    await page.getByLabel('Show').selectOption('done');
    const one = record(page, 'You said: perhaps');
    await told(one, 'Delivered');
    assert.doesNotMatch(await one.innerText(), /may have been posted/);
    await one.getByRole('link', { name: 't4' }).click();
    await page.waitForURL('**/console/gateways/chat/gateway-session-*');
    await told(record(page, 'perhaps'), 'ada', 'Answer');
  }),
  'one that is given up': (b) => on(b, '/gateways/chat?tab=deliveries&show=open', async (page) => {
    await adapter('is busy');
    await say('t5', 'too much');
    await told(record(page, 'You said: too much'), 'Retry scheduled', 'Send failed', 'Next attempt');
    await page.getByRole('button', { name: 'Abandon' }).click();
    await page.getByText('Give it up?').waitFor();
    await page.keyboard.press('Enter');
    await record(page, 'too much').waitFor({ state: 'detached' });
    await adapter();
    await page.getByLabel('Show').selectOption('dead');
    await told(record(page, 'You said: too much'), 'Failed', 'given up by system:serviceaccount:default:ann');
    assert.deepEqual(await said('t5'), []);
  }),
  'one that was rejected': async (b) => {
    await on(b, '/gateways/chat?tab=events&show=rejected', async (page) => {
      await shown(page, 'none', 'None of the events is what you look for');
      await say('t6', 'let me in', { id: 'replay-1', sender: 'mallory', name: 'ada' });
      await told(record(page, 'let me in'), 'Rejected', 'Sender not allowed', 'shown as “ada”, unverified');
      assert.match(await page.locator('article h2').first().innerText(), /^mallory /);
    });
    await on(b, '/gateways/chat?tab=events&show=rejected', async (page) => {
      await told(record(page, 'let me in'), 'Rejected');
      await page.goto(`${BASE}/console/gateways/chat?tab=deliveries&show=dead`);
      await told(record(page, 'too much'), 'Failed');
      assert.deepEqual(await buttons(page), [], 'who may not change the gateway');
    }, HALF);
    await on(b, '/gateways/chat?tab=events&show=rejected', async (page) => {
      await told(record(page, 'let me in'), 'Rejected');
      await ask('allow', { sender: 'mallory' });
      await page.getByRole('button', { name: 'Replay' }).click();
      await record(page, 'let me in').waitFor({ state: 'detached' });
      await page.getByLabel('Show').selectOption('done');
      const one = record(page, 'let me in');
      await told(one, 'Completed', '1 time, last by system:serviceaccount:default:ann');
      await one.getByRole('link', { name: 't6' }).click();
      await told(record(page, 'You said: let me in'), 'Delivered');
    });
  },
  'many': (b) => on(b, '/gateways/chat?tab=events', async (page) => {
    await record(page, 'let me in').first().waitFor();
    const before = await page.locator('article').count();
    for (let i = 1; i <= 55; i++) await say('many', `message ${i}.`, { sender: 'stranger' });
    await page.waitForFunction((n) => document.querySelectorAll('article').length === n, before + 55); // each as it arrived
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll('article').length === 50);
    await shown(page, 'there are more', 'Not all events are shown');
    await say('many', 'message 56.', { sender: 'stranger' });
    await page.waitForFunction(() => /message 56\./.test(document.querySelector('article').innerText));
    await page.getByRole('button', { name: 'Load more' }).click();
    await page.waitForFunction((n) => document.querySelectorAll('article').length === n, before + 56);
    const order = await page.evaluate(() => [...document.querySelectorAll('article')].map((a) => /message (\d+)\./.exec(a.innerText)?.[1]).filter(Boolean).map(Number));
    assert.deepEqual(order, Array.from({ length: 56 }, (_, i) => 56 - i));
    assert.equal(await page.getByRole('button', { name: 'Load more' }).count(), 0);
    await page.goto(`${BASE}/console/gateways/chat?tab=events&show=rejected`);
    await page.waitForFunction(() => document.querySelectorAll('article').length === 50);
    await page.getByRole('button', { name: 'Load more' }).click();
    await page.waitForFunction(() => document.querySelectorAll('article').length === 56);
  }),
  'what strangers write': (b) => on(b, '/gateways/chat', async (page) => {
    await say(HOSTILE, `**bold** [link](https://evil.example) ${HOSTILE}`, { name: HOSTILE });
    await told(row(page, 'onerror'), 'Completed');
    await harmless(page, 'conversations');
    await row(page, 'onerror').getByRole('link').click();
    await page.waitForURL('**/console/gateways/chat/gateway-session-*');
    await told(record(page, 'You said: **bold** [link](https://evil.example)'), 'Delivered', '⟨U+202E⟩gnp.exe');
    await told(record(page, 'unverified'), 'shown as “<img src=x onerror="window.pwned=1"><script>', '**bold**');
    await harmless(page, 'a conversation');
    for (const tab of ['events', 'deliveries']) {
      await page.goto(`${BASE}/console/gateways?tab=${tab}`);
      await told(record(page, 'onerror'), '**bold**');
      await harmless(page, tab);
    }
  }),
  'a gateway that fails, and one that is gone': (b) => on(b, '/gateways/chat', async (page) => {
    await ask('touch', { with: 'none' });
    await page.locator('.notice', { hasText: /"none"/ }).first().waitFor();
    await page.goto(`${BASE}/console/gateways`);
    await told(row(page, 'chat'), 'Not ready', '"none"');
    await ask('touch', { with: 'out' });
    await told(row(page, 'chat'), 'Connected');
    await page.waitForFunction(() => !/Not ready/.test(document.querySelector('tbody').innerText));
    await ask('delete');
    await shown(page, 'no gateway', 'No chat system is connected');
    await page.goto(`${BASE}/console/gateways/chat?tab=deliveries`);
    await shown(page, 'what is kept', 'There is no gateway of this name');
    await told(record(page, 'You said: hello'), 'Delivered');
  }),
});
