// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Monitors of repositories: what they look after, what is blocked and why, and what somebody may ask of them.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';

const { VIEWER, ADMIN, HEAD } = process.env;
const group = '/apis/core.platform.ai/v1alpha1/namespaces/team';

async function on(browser, path, act, token) {
  const { page, complaints, close } = await signedIn(browser, {}, token);
  await page.goto(`${BASE}/console${path}`);
  await act(page);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 409/.test(c)), []);
}

// status changes the status of an object, as a controller does.
async function status(browser, path, change) {
  const { page, close } = await signedIn(browser, {}, ADMIN);
  const code = await page.evaluate(async ([path, change]) => {
    const headers = { 'content-type': 'application/merge-patch+json', 'x-platform-console': localStorage.getItem('platform.console.key') };
    return (await fetch(path, { method: 'PATCH', headers, body: JSON.stringify({ status: change }) })).status;
  }, [`${group}/${path}/status`, change]);
  await close();
  assert.equal(code, 200, path);
}

const row = (page, text) => page.locator('tbody tr', { hasText: text });
const buttons = (page) => page.locator('main button:visible').allInnerTexts();

// told waits until a row says all of some texts.
async function told(page, text, ...all) {
  await row(page, text).first().waitFor();
  const said = (await row(page, text).first().innerText()).replace(/\s+/g, ' ');
  for (const t of all) assert.ok(said.includes(t), `${said}, without ${t}`);
}

await run({
  'what is there': (b) => on(b, '/monitors', async (page) => {
    await told(page, 'shop', 'https://git.example/ada/shop', 'Ready');
    await page.getByLabel('Find a monitor').fill('ada/shop');
    assert.equal(await page.locator('tbody tr').count(), 1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/monitors/shop');
    await shown(page, 'the monitor', 'Ready: All is said.');
    await told(page, 'No bell', 'issue #9', 'approval required');
    await told(page, 'A window', 'Paused', 'it has the label paused.');
    await told(page, 'Mend the door', 'needs changes', 'failed', 'blocked', HEAD.slice(0, 12), '1 finding: A door without a lock.');
    assert.match(await page.locator('tbody tr').first().innerText(), /No bell/); // what waits for somebody is first
    await page.getByLabel('Show').selectOption('blocked');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await told(page, 'A window', 'Paused');
    await page.goto(`${BASE}/console/monitors/shop?tab=runs`);
    await told(page, 'all', 'failed', 'schedule', 'the code host did not answer');
    await row(page, 'all').getByRole('link').click();
    await page.waitForURL('**tab=work&q=shop.first');
    await told(page, 'review, pull request #7', 'succeeded', 'needs changes', 'plain');
    assert.equal(await page.getByRole('link', { name: 'plain' }).getAttribute('href'), '/console/tasks/plain');
    await page.goto(`${BASE}/console/monitors/shop?tab=commands`);
    await told(page, 'fix, pull request #7', 'rejected', 'mallory', 'label platform:fix', 'Permission missing: mallory may only read.');
    await page.goto(`${BASE}/console/monitors/shop?tab=written`);
    await told(page, 'post review, pull request #7', 'succeeded', 'git.example');
    await page.goto(`${BASE}/console/monitors/shop?tab=yaml`);
    await shown(page, 'yaml', 'kind: RepositoryMonitor');
    await page.goto(`${BASE}/console/monitors/none`);
    await shown(page, 'another name', 'There is no monitor of this name');
    await page.goto(`${BASE}/console/monitors/shop/shop.pr-99`);
    await shown(page, 'another number', 'knows no such pull request');
  }),
  'a pull request': (b) => on(b, '/monitors/shop', async (page) => {
    await row(page, 'Mend the door').getByRole('link').click();
    await page.waitForURL('**/console/monitors/shop/shop.pr-7');
    for (const text of ['needs changes', 'A door without a lock.', 'P1 No lock', 'README.md:2', 'the agent gave up', 'the review has findings', HEAD, 'mallory', 'ada/shop, work']) await shown(page, 'the pull request', text);
    const links = await page.evaluate(() => [...document.querySelectorAll('main a')].map((a) => `${a.textContent} ${a.getAttribute('href')} ${a.rel}`));
    for (const want of ['pull request #7 (git.example) https://git.example/ada/shop/pulls/7 noopener noreferrer nofollow', 'plain /console/tasks/plain ', 'long /console/tasks/long ']) assert.ok(links.includes(want), `${links}, without ${want}`);
    await page.keyboard.press('3');
    await told(page, 'fix, pull request #7', 'rejected');
    await page.goto(`${BASE}/console/monitors/shop/shop.pr-8`);
    await shown(page, 'a blocked one', 'Blocked: Paused. it has the label paused.');
  }),
  'it is live': async (b) => {
    await on(b, '/monitors/shop', async (page) => {
      await told(page, 'A window', 'Paused');
      await status(b, 'monitoritems/shop.pr-8', { blockedReason: 'Draft', message: 'it is a draft' });
      await row(page, 'A window').getByText('it is a draft').waitFor();
      await status(b, 'monitoritems/shop.pr-8', { state: 'merged', blockedReason: '', message: '' });
      await row(page, 'A window').waitFor({ state: 'detached' });
      await status(b, 'repositorymonitors/shop', { phase: 'Error', conditions: [{ type: 'Ready', status: 'False', reason: 'SecretNotFound', message: 'there is no Secret', lastTransitionTime: '2026-01-01T00:00:00Z' }] });
      await page.locator('.notice', { hasText: 'Ready: there is no Secret' }).waitFor();
      await page.goto(`${BASE}/console/monitors`);
      await told(page, 'shop', 'Error', 'there is no Secret');
    });
  },
  'what somebody may ask for': (b) => on(b, '/monitors/shop', async (page) => {
    await page.getByRole('button', { name: 'Look now' }).click();
    await page.getByText('A run is queued.').waitFor();
    await page.getByRole('button', { name: 'Look now' }).click();
    await page.getByRole('alert').getByText('which is not over').waitFor();
    await page.goto(`${BASE}/console/monitors/shop/shop.pr-7?tab=commands`);
    await page.getByRole('button', { name: 'Review' }).click();
    await told(page, 'review, pull request #7', 'accepted', 'system:serviceaccount:team:eve', 'API');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.keyboard.press('Escape'); // nothing was asked for
    await page.getByRole('button', { name: 'Review' }).waitFor();
    assert.equal(await row(page, 'stop, pull request #7').count(), 0);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Cancel the work in progress').waitFor();
    await page.keyboard.press('Enter');
    await told(page, 'stop, pull request #7', 'accepted');
    await status(b, 'monitoritems/shop.pr-7', { stopped: true, blockedReason: 'Stopped', message: 'the command stop was given' });
    await page.getByRole('button', { name: 'Resume' }).click();
    await told(page, 'resume, pull request #7', 'accepted');
    assert.ok(!(await buttons(page)).includes('Review'), 'a command to what is stopped');
  }),
  'a plan': async (b) => {
    await on(b, '/monitors/shop?show=waiting', async (page) => {
      await row(page, 'No bell').getByRole('link').click();
      await page.waitForURL('**/console/monitors/shop/shop.issue-9');
      await page.getByRole('button', { name: 'Approve the plan', disabled: false }).waitFor();
      assert.match(await page.getByRole('region', { name: 'Plan that waits' }).innerText(), /Make a bell\.\nAll is said\./);
      await page.keyboard.press('y'); // chooses
      await page.keyboard.press('Enter'); // asks
      await page.getByText('Approve of this plan?').waitFor();
      await page.keyboard.press('Enter'); // confirms
      await page.getByText('The approval was given.').waitFor();
      await status(b, 'monitoritems/shop.issue-9', { issue: { phase: 'approved', planApprovedBy: 'eve', plan: `Make a bell.\n${'It rings.\n'.repeat(300)}` } });
      await shown(page, 'who approved', 'Plan approved by');
      assert.equal(await page.getByRole('button', { name: 'Approve the plan' }).count(), 0);
      await status(b, 'monitoritems/shop.issue-9', { issue: { phase: 'approval_required', planApprovedBy: '' } });
      const approve = page.getByRole('button', { name: 'Approve the plan' });
      await approve.waitFor();
      assert.ok(await approve.isDisabled(), 'what was not in view can be approved of');
    });
    await on(b, '/monitors/shop/shop.issue-9', async (page) => {
      await shown(page, 'the plan', 'Plan that waits');
      await page.waitForFunction(() => !/Loading/.test(document.querySelector('main').innerText));
      await page.getByText('Make a bell.').waitFor();
      assert.deepEqual((await buttons(page)).filter((t) => !/Show the next part/.test(t)), []);
    }, VIEWER);
  },
  'what strangers write': (b) => on(b, '/monitors', async (page) => {
    const paths = ['', '/evil', '/evil?tab=runs', '/evil?tab=commands', '/evil?tab=work', '/evil?tab=written', '/evil?tab=yaml', '/evil/evil.pr-7', '/evil/evil.pr-8', '/evil/evil.issue-9'];
    for (const path of paths) {
      await page.goto(`${BASE}/console/monitors${path}`);
      await shown(page, path, path ? 'onerror' : 'evil');
      assert.equal(await page.evaluate(() => window.pwned), undefined, path);
      assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script, main iframe, main svg, main a:not([href^="/console"]):not([href^="https://git.example/"])').length), 0, path);
      assert.ok(!/\u202e/.test(await page.evaluate(() => document.body.innerText)), `${path}: a character that turns the text around`);
    }
    await page.goto(`${BASE}/console/monitors/evil/evil.issue-9`);
    await shown(page, 'its address', 'issue #9 (javascript:window.pwned=1)');
    assert.match(await page.getByRole('region', { name: 'Plan that waits' }).innerText(), /<img src=x onerror="window\.pwned=1"><script>.*⟨U\+202E⟩gnp\.exe/);
  }),
});
