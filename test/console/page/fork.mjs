// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A fork without a mouse, from the first page on.
import { assert, run, signedIn, went } from './drive.mjs';

await run({
  'fork': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.locator('main h1').waitFor();
    await went(page, 't', '/tasks');
    await page.getByRole('link', { name: 'plain' }).waitFor();
    do await page.keyboard.press('j'); while (!(await page.evaluate(() => document.activeElement.textContent)).includes('plain'));
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/tasks/plain');
    await page.locator('.line .what').first().waitFor();
    await page.keyboard.press('Home');
    await page.keyboard.press('j');
    await page.waitForURL('**#seq=2');
    await page.getByRole('button', { name: 'Fork from here' }).waitFor();
    await page.keyboard.press('f');
    await page.getByLabel('Prompt').and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Escape'); // a choice is no fork
    await page.getByRole('button', { name: 'Fork from here' }).waitFor();
    await page.keyboard.press('f');
    await page.getByLabel('Prompt').and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('again');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/compare?a=plain&b=again');
    await page.getByText('is a fork of').waitFor();
    await close();
    assert.deepEqual(complaints, []);
  },
});
