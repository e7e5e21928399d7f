// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Many approvals, and exactly what each is about.
import { BASE, assert, nodes, run, shown, signedIn } from './drive.mjs';

const { LAST, MANY, SECRET, LONG, HIDDEN, NONE, BLANK, LINES } = process.env;

// every presses the button for more until there are n rows.
async function every(page, n) {
  const more = page.getByRole('button', { name: 'Show more' });
  for (const until = Date.now() + 120_000; ; ) {
    const rows = await page.locator('tbody tr').count();
    if (rows === n && (await more.count()) === 0) return;
    assert.ok(rows <= n && Date.now() < until, `${rows} rows, not ${n}`);
    if (await more.count()) await more.click({ timeout: 2000 }).catch(() => undefined); // it may be gone meanwhile
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

await run({
  'beyond 500': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/approvals/${LAST}`);
    await shown(page, 'the last one', 'Arguments of');
    await page.getByRole('heading', { name: 'action 599' }).waitFor();
    await page.getByRole('heading', { name: 'The same arguments were decided before' }).waitFor();
    await shown(page, 'what was decided before', 'not at night');
    await page.goto(`${BASE}/console/approvals`);
    await shown(page, 'what waits', 'are not shown');
    assert.ok((await nodes(page)) < 3000, `${await nodes(page)} nodes`);
    await every(page, 607);
    await page.goto(`${BASE}/console/approvals?state=all`);
    await every(page, 608);
    await shown(page, 'all', 'the same before');
    await page.goto(`${BASE}/console/approvals/no-such-approval`);
    await shown(page, 'another name', 'not kept any more, or does not exist');
    await close();
    assert.deepEqual(complaints.filter((c) => !/status of 404/.test(c)), []);
  },
  'exactly these': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    const show = async (id) => {
      await page.goto(`${BASE}/console/approvals/${id}`);
      await page.getByRole('button', { name: 'Approve' }).waitFor();
      return page.evaluate(() => document.querySelector('.approval').innerText);
    };
    let text = await show(MANY);
    assert.match(text, /Exactly these/);
    assert.equal(await page.locator('.arguments > div').count(), 101);
    assert.match(text, /\b9223372036854775808\b/);
    assert.match(text, /\b9007199254740993\b/);
    assert.match(text, /\b1\.50\b/);
    const names = await page.evaluate(() => [...document.querySelectorAll('.arguments dt')].map((e) => e.innerText.trim()));
    assert.ok(names.includes('number number') && names.includes('digit'), String(names)); // 1 is not "1"
    text = await show(HIDDEN);
    assert.match(text, /a⟨U\+2800⟩b⟨U\+3164⟩c⟨U\+034F⟩d⟨U\+FE0F⟩e⟨U\+00A0⟩f⟨U\+200D⟩g/);
    assert.match(text, /Exactly these/);
    text = await show(NONE);
    assert.match(text, /The call has no arguments/);
    await close();
    assert.deepEqual(complaints, []);
  },
  'nothing out of view': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    const approve = page.getByRole('button', { name: 'Approve' });
    await page.goto(`${BASE}/console/approvals/${BLANK}`);
    await approve.waitFor();
    const text = await page.evaluate(() => document.querySelector('.approval').innerText);
    assert.match(text, /31 lines, 29 of them blank/);
    assert.match(text, /ls\n29 blank lines\nrm -rf ~900 spaces; true/);
    const below = await page.evaluate(() => document.querySelector('.fold').getBoundingClientRect().height);
    assert.ok(below < 40, `${below} px`);
    await page.getByRole('button', { name: 'Approve', disabled: false }).waitFor(); // all of it is in view

    await page.goto(`${BASE}/console/approvals/${LINES}`);
    await approve.waitFor();
    await shown(page, 'a long one', '201 lines');
    assert.ok(await approve.isDisabled(), 'what was not in view can be approved');
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight)); // over the middle
    await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
    assert.ok(await approve.isDisabled(), 'the middle was not in view');
    for (let n = 0; (await approve.isDisabled()); n++) {
      assert.ok(n < 50, 'the parts do not end');
      await page.keyboard.press('y');
      assert.equal(await page.locator('#reason').count(), 0);
      await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
    }
    await page.keyboard.press('y');
    await page.getByLabel('Approve: a reason').waitFor();
    await close();
    assert.deepEqual(complaints, []);
  },
  'not all of it': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    for (const id of [SECRET, LONG]) {
      await page.goto(`${BASE}/console/approvals/${id}`);
      await shown(page, id, 'Not all of the arguments are shown: secrets are replaced, long texts are cut');
      assert.equal(await page.getByText('Exactly these').count(), 0);
      assert.equal(await page.getByText('correct-horse').count(), 0);
      await page.getByRole('button', { name: 'Approve' }).waitFor(); // once it is known what the viewer may do
      await page.keyboard.press('y');
      await page.getByLabel('Approve what is not shown in full').waitFor();
    }
    await close();
    assert.deepEqual(complaints, []);
  },
});
