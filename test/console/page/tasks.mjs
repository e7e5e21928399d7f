// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// More tasks than a list has.
import { BASE, assert, nodes, run, shown, signedIn } from './drive.mjs';

await run({
  'now': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/`);
    await shown(page, 'the task that failed', 'zz-failed');
    await page.locator('table[aria-label="Active tasks"] tbody tr').nth(19).waitFor(); // another request's answer
    const cards = await page.evaluate(() => [...document.querySelectorAll('.card')].map((e) => e.innerText.replace(/\s+/g, ' ')));
    assert.deepEqual(cards.slice(0, 3), ['0 waiting for a decision', `${process.env.ACTIVE} active tasks`, '1 failed in 24 hours']);
    assert.equal(await page.locator('table[aria-label="Active tasks"] tbody tr').count(), 20);
    assert.ok((await nodes(page)) < 1500, `${await nodes(page)} nodes`);
    await page.keyboard.press(']'); // the next task that failed
    await page.locator('a.row:focus', { hasText: 'zz-failed' }).waitFor();
    // All rows are one list to the keys, from the first table to the last.
    await page.evaluate(() => document.activeElement.blur());
    const row = () => page.evaluate(() => document.activeElement.textContent);
    const first = await page.locator('main a.row').first().innerText();
    await page.keyboard.press('j');
    assert.equal(await row(), first);
    for (let i = 0; i < 20; i++) await page.keyboard.press('j');
    assert.equal(await row(), 'zz-failed');
    await page.keyboard.press('k');
    assert.notEqual(await row(), 'zz-failed');
    await close();
    assert.deepEqual(complaints, []);
  },
});
