// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Views of runs that go on: what is added appears by itself, and what somebody reads stays where it is.
import { BASE, MORE, assert, run, shown, signedIn } from './drive.mjs';

const more = (task, n) => fetch(`${MORE}?task=${task}&n=${n}`);
const place = (page) => page.evaluate(() => [document.activeElement.innerText.split('\n').at(-1), window.scrollY]);

await run({
  'compare': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/compare?a=asks&b=long`);
    await shown(page, 'two runs that have begun', 'Neither run has done anything yet.');
    await more('asks', 12);
    await shown(page, 'the run that began', 'Part 1000011');
    await shown(page, 'the other run', 'has done nothing yet');
    await more('long', 8);
    await shown(page, 'runs one of which is behind', 'The first 8 steps are alike; long has not gone further yet.');
    assert.equal(await page.getByText('First difference').count(), 0);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const before = await place(page);
    assert.equal(before[0], 'Part 1000001');
    await more('asks', 1);
    await shown(page, 'a step that was added', 'Part 1000012');
    assert.deepEqual(await place(page), before);
    assert.equal(await page.locator('.pair').count(), 13);
    await close();
    assert.deepEqual(complaints, []);
  },
  'transcript': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/tasks/plain?tab=transcript`);
    await shown(page, 'the transcript', 'failure 39');
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    const before = await place(page);
    assert.equal(before[0], 'Part 1');
    await more('plain', 3);
    await page.getByText('Part 1000002').waitFor({ state: 'attached' });
    assert.deepEqual(await place(page), before);
    await page.keyboard.press('j');
    assert.equal((await place(page))[0], 'Part 2');
    await page.goto(`${BASE}/console/tasks/plain?tab=transcript&before=30`); // a page before the last one stays as it is
    await shown(page, 'an earlier page', 'Part 28');
    assert.equal(await page.getByText('Part 1000002').count(), 0);
    await close();
    assert.deepEqual(complaints, []);
  },
});
