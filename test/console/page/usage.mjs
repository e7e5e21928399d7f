// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Usage by periods, also where there is more of it than one report adds up.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';

const requests = Number(process.env.REQUESTS);

async function on(browser, path, act) {
  const { page, complaints, close } = await signedIn(browser);
  await page.goto(`${BASE}/console${path}`);
  await act(page);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 422/.test(c)), []); // which is why the period is halved
}

const today = new Date().toISOString().slice(0, 10);
const cards = (page) => page.locator('.card', { hasText: 'requests to models' }).locator('b').innerText();
const said = `${requests}`.replace(/\B(?=(\d{3})+$)/g, ',');

await run({
  'more than one report adds up': (b) => on(b, '/usage?period=7d', async (page) => {
    await shown(page, 'the sums', 'Added up from');
    assert.equal(await cards(page), said);
    await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('model');
    await page.waitForURL('**by=model*');
    await page.getByRole('row', { name: /model-of-busier/ }).waitFor();
    for (const model of ['model-of-busy', 'model-of-busier']) assert.match(await page.getByRole('row', { name: `${model} ` }).innerText(), new RegExp(`${requests / 2}`.replace(/\B(?=(\d{3})+$)/g, ',')));
  }),
  'weeks and months': (b) => on(b, '/usage', async (page) => {
    await page.getByRole('cell', { name: today }).waitFor();
    await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('month');
    await page.getByRole('cell', { name: today.slice(0, 7), exact: true }).waitFor();
    await page.getByRole('combobox', { name: 'By', exact: true }).selectOption('week');
    const monday = new Date(Date.parse(today) - ((new Date(today).getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10);
    await page.getByRole('cell', { name: monday, exact: true }).waitFor();
    assert.equal(await cards(page), said);
  }),
  'a chosen period': (b) => on(b, '/usage', async (page) => {
    await page.getByRole('combobox', { name: 'Period', exact: true }).selectOption('custom');
    await page.getByLabel('From', { exact: true }).fill('2020-01-01');
    await page.getByLabel('To', { exact: true }).fill('2020-02-01');
    await page.waitForURL('**from=2020-01-01&until=2020-02-01*');
    await shown(page, 'a period without usage', 'No model was asked in this period.');
    await page.getByLabel('To', { exact: true }).fill('2019-01-01');
    await shown(page, 'a period that is none', 'The period ends before it begins.');
    await page.getByLabel('To', { exact: true }).fill(today);
    await shown(page, 'the sums', 'Added up from');
    await page.reload(); // the address holds it
    await shown(page, 'the sums', 'Added up from');
    assert.equal(await page.getByLabel('From', { exact: true }).inputValue(), '2020-01-01');
  }),
});
