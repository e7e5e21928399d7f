// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Decisions without a mouse.
import { BASE, assert, run, signedIn, went } from './drive.mjs';

const { YES, NO, VIEWER } = process.env;

await run({
  'approve': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.getByText('waiting for a decision').first().waitFor();
    await went(page, 'a', '/approvals');
    await page.getByRole('heading', { name: 'Approvals', exact: true }).waitFor();
    await page.getByText('a first action').first().waitFor();
    await page.keyboard.press('j');
    while (!(await page.evaluate(() => document.activeElement.textContent)).includes('a first action')) await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/approvals/${YES}`);
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.keyboard.press('y');
    await page.getByLabel('Approve: a reason').waitFor();
    await page.keyboard.type('go on');
    await page.keyboard.press('Enter');
    await page.getByText('Decided').waitFor();
    await close();
    assert.deepEqual(complaints, []);
  },
  'decline': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/approvals/${NO}`);
    await page.getByRole('button', { name: 'Decline' }).waitFor();
    await page.keyboard.press('y');
    await page.getByLabel('Approve: a reason').waitFor();
    await page.keyboard.press('Escape'); // a choice is no decision
    await page.getByRole('button', { name: 'Decline' }).waitFor();
    // Who types at once types into the field: it has the focus when it appears, not a frame later.
    await page.evaluate(() => {
      window.focused = new Promise((done) => {
        new MutationObserver((_, o) => {
          const field = document.querySelector('#reason');
          if (field) (o.disconnect(), done(document.activeElement === field));
        }).observe(document.body, { childList: true, subtree: true });
      });
    });
    await page.keyboard.press('n');
    assert.ok(await page.evaluate(() => window.focused));
    await page.keyboard.type('not now');
    await page.keyboard.press('Enter');
    await page.getByText('Decided').waitFor();
    await close();
    assert.deepEqual(complaints, []);
  },
  'no button for a viewer': async (b) => {
    const { page, close } = await signedIn(b, {}, VIEWER);
    await page.goto(`${BASE}/console/approvals/${NO}`);
    await page.getByText('a second action').first().waitFor();
    assert.equal(await page.getByRole('button', { name: /Approve|Decline/ }).count(), 0);
    await close();
  },
});
