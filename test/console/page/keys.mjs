// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Keys of single views, and the way to a comparison.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';

const focused = (page, text) => page.waitForFunction((t) => document.activeElement.innerText?.includes(t), text);

async function on(browser, path, text, act) {
  const { page, complaints, close } = await signedIn(browser);
  await page.goto(`${BASE}/console${path}`);
  await shown(page, path, text);
  await act(page);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 404/.test(c)), []);
}

await run({
  'compare with': (b) => on(b, '/tasks/plain', 'Compare with', async (page) => {
    await page.keyboard.press('c');
    await page.waitForURL('**/console/compare?a=plain');
    await page.getByRole('link', { name: 'long' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'plain' }).count(), 0);
    do await page.keyboard.press('j'); while (!(await page.evaluate(() => document.activeElement.textContent)).includes('long'));
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/compare?a=plain&b=long');
    await page.getByText('First difference').waitFor();
  }),
  'failures of a comparison': (b) => on(b, '/compare?a=plain&b=long', 'First difference', async (page) => {
    const at = (row) => page.waitForFunction((n) => document.activeElement.dataset.step === n, row);
    await page.keyboard.press(']');
    await at('9'); // of both
    await page.keyboard.press(']');
    await at('19');
    await page.keyboard.press('[');
    await at('9');
    await page.keyboard.press('d');
    await page.waitForURL('**#difference'); // the address holds it
  }),
  'a longer comparison': (b) => on(b, '/compare?a=plain&b=wordy', 'First difference', async (page) => {
    assert.equal(await page.locator('.pair').count(), 100);
    for (let i = 0; i < 10; i++) await page.keyboard.press(']');
    assert.equal(await page.locator('.pair').count(), 100);
    await page.keyboard.press(']');
    await page.waitForFunction(() => document.activeElement.dataset.step === '109'); // beyond what was shown
    assert.ok(page.url().includes('rows='), page.url());
    const rows = await page.locator('.pair').count();
    await page.reload();
    await page.getByText('First difference').waitFor();
    assert.equal(await page.locator('.pair').count(), rows);
  }),
  'approvals': (b) => on(b, '/approvals', 'remove the old files', async (page) => {
    await shown(page, 'the other one', 'send a letter');
    await page.keyboard.press('/');
    await page.keyboard.type('LETTER');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/approvals/*?q=LETTER');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.goto(`${BASE}/console/approvals?q=nothing+of+this`);
    await shown(page, 'a search without a result', 'No approval matches');
  }),
  'messages': (b) => on(b, '/sessions/talk', 'Nothing of note', async (page) => {
    await page.keyboard.press('j');
    await focused(page, 'What was said?');
    await page.keyboard.press('j');
    await focused(page, 'Calls check_task');
    await page.keyboard.press('Enter'); // opens what was called with
    await page.locator('details[open]').waitFor();
  }),
  'budgets': (b) => on(b, '/usage', 'Budgets', async (page) => {
    await page.getByRole('cell', { name: 'all' }).first().waitFor();
    await page.keyboard.press('j');
    await focused(page, 'all');
  }),
});
