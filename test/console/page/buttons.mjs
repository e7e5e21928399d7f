// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons that change or fetch something, with a server that does it.
import { readFileSync } from 'node:fs';
import { BASE, assert, run, signedIn } from './drive.mjs';

async function on(browser, path, act) {
  const { page, complaints, close } = await signedIn(browser);
  await page.goto(`${BASE}/console${path}`);
  await act(page);
  await close();
  assert.deepEqual(complaints, []);
}

const about = (page, name) => page.getByRole('article', { name });

await run({
  'accept and apply': (b) => on(b, '/memory', async (page) => {
    const one = about(page, 'Staging is rebuilt at night');
    await one.getByRole('button', { name: 'Accept' }).waitFor(); // once it is known what the viewer may do
    do await page.keyboard.press('j'); while (!(await one.evaluate((e) => e === document.activeElement)));
    await page.keyboard.press('y'); // chooses
    await page.keyboard.press('Enter'); // confirms
    await one.getByRole('button', { name: 'Apply' }).waitFor();
    await one.getByRole('button', { name: 'Apply' }).click();
    await one.getByText('applied').waitFor();
    assert.equal(await one.getByRole('button').count(), 0);
  }),
  'reject and archive': (b) => on(b, '/memory', async (page) => {
    const one = about(page, 'Not this');
    await one.getByLabel('Note').fill('It is wrong.');
    await one.getByRole('button', { name: 'Reject' }).click();
    await one.getByText('It is wrong.').waitFor();
    await one.getByRole('button', { name: 'Archive' }).click();
    await one.waitFor({ state: 'detached' });
    await page.getByLabel('State').selectOption('archived');
    await one.waitFor();
  }),
  'disable and enable': (b) => on(b, '/memory?tab=memories', async (page) => {
    for (const [name, ends] of [['window', 'enabled'], ['other', 'disabled']]) {
      const one = about(page, name);
      await one.getByRole('button', { name: 'Disable' }).click();
      await one.getByText('(disabled)').waitFor();
      if (ends === 'disabled') continue;
      await one.getByRole('button', { name: 'Enable' }).click();
      await one.getByRole('button', { name: 'Disable' }).waitFor();
      assert.equal(await one.getByText('(disabled)').count(), 0);
    }
  }),
  'download': (b) => on(b, '/tasks/plain?tab=artifacts', async (page) => {
    await page.getByText('report.txt').waitFor();
    for (const act of [() => page.getByRole('button', { name: 'Download' }).click(), async () => (await page.keyboard.press('k'), await page.keyboard.press('j'), await page.keyboard.press('Enter'))]) {
      const [saved] = await Promise.all([page.waitForEvent('download'), act()]);
      assert.equal(saved.suggestedFilename(), 'report.txt');
      assert.equal(readFileSync(await saved.path(), 'utf8'), 'All is well.');
      await page.evaluate(() => document.activeElement.blur());
    }
  }),
});
