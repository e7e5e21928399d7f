// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Turns of a chat whose connection is cut in their middle.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';
import { SHOTS } from './look.mjs';

const { CUT } = process.env;

// begun returns a page on which a turn is being answered. sent are the requests that began turns, and followed those that read them.
async function begun(browser, background) {
  const { page, complaints, close } = await signedIn(browser);
  const sent = [];
  const followed = [];
  page.on('request', (r) => {
    const { pathname } = new URL(r.url());
    if (r.method() === 'POST' && pathname.endsWith('/chats')) sent.push(pathname);
    if (pathname.endsWith('/turn')) followed.push(r.url());
  });
  await page.goto(`${BASE}/console/chat`);
  if (background) await page.getByLabel('Go on when I leave').check();
  await page.getByLabel('Message').fill('wait for it');
  await page.keyboard.press('Enter');
  await shown(page, 'the turn', 'wait_for_task');
  return { page, sent, followed, close, complaints: () => complaints.filter((c) => !/Failed to load resource|net::ERR/.test(c)) };
}

await run({
  'in the background': async (b) => {
    const { page, sent, followed, close, complaints } = await begun(b, true);
    const again = page.waitForResponse((r) => new URL(r.url()).pathname.endsWith('/turn') && r.ok());
    await fetch(CUT);
    await again;
    assert.equal(await page.getByRole('alert').count(), 0);
    assert.match(followed[0], /after=\d+/);
    await page.screenshot({ path: `${SHOTS}/answering-light.png` });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await shown(page, 'the end of the turn', 'cancelled');
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
    assert.equal(await page.locator('.turn', { hasText: 'I wait.' }).count(), 1); // no frame was read twice
    assert.equal(sent.length, 1);
    await close();
    assert.deepEqual(complaints(), []);
  },
  'in the foreground': async (b) => {
    const { page, sent, followed, close, complaints } = await begun(b, false);
    await fetch(CUT);
    await shown(page, 'what happened', 'The connection was cut before the answer was complete');
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
    await page.waitForFunction(() => document.querySelector('#message').value === 'wait for it'); // to be sent again
    await page.screenshot({ path: `${SHOTS}/cut-light.png` });
    assert.deepEqual([sent.length, followed.length], [1, 0]);
    await close();
    assert.deepEqual(complaints(), []);
  },
});
