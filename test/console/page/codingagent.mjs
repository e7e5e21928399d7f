// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a coding agent asks for, decided in the console, and a delivery that did not succeed.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';
import { looks } from './look.mjs';

async function on(browser, path, text, act) {
  const { page, complaints, close } = await signedIn(browser);
  await page.goto(`${BASE}/console${path}`);
  await shown(page, path, text);
  await act(page);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 404/.test(c)), []);
}

await run({
  ...looks({
    'coding-asks': ['/approvals', 'greet.sh', async (page) => {
      await page.getByRole('link', { name: 'Edit greet.sh' }).click();
      await shown(page, 'the kind of the tool', 'of the coding agent itself');
    }],
    'coding-conflict': ['/tasks/collides?tab=changes', 'Nothing was overwritten'],
  }),
  'a permission': (b) => on(b, '/tasks/mends', 'Waits for a decision', async (page) => {
    await page.getByRole('link', { name: 'Edit greet.sh' }).click();
    await shown(page, 'the kind of the tool', 'Tool edit of the coding agent itself, of kind edit.');
    assert.deepEqual(await page.locator('.patch').locator('del, ins').allInnerTexts(), ['- Helo', '+ Hello']);
    const args = await page.locator('.arguments').innerText();
    for (const want of ['file_path', 'greet.sh', 'old_string', 'Helo', 'new_string', 'Hello']) assert.ok(args.includes(want), args);
    await shown(page, 'that they are exact', 'Exactly these.');
    await page.keyboard.press('y');
    await page.getByLabel('Approve: a reason').fill('it is misspelled');
    await page.keyboard.press('Enter');
    await shown(page, 'the decision', 'it is misspelled');
    await page.getByRole('link', { name: 'mends', exact: true }).click();
    await shown(page, 'the end of the run', 'mend-greeting: Verified exact');
  }),
  'a conflict': (b) => on(b, '/tasks/collides', 'Delivery conflict', async (page) => {
    await page.getByRole('link', { name: 'elsewhere: Delivery conflict' }).click();
    await shown(page, 'what to do', 'Nothing was overwritten: the branch is elsewhere, as the message above says.');
    await shown(page, 'the address of the pull request', '#7 (javascript:window.pwned=1)');
    assert.equal(await page.locator('main a[href^="javascript"]').count(), 0);
    await shown(page, 'the diff', 'note.txt');
    assert.deepEqual(await page.locator('.steps li a').allInnerTexts(), ['Validating', 'Delivery conflict']);
  }),
});
