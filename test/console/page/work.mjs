// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The console as a place to work: tasks are found, made, run again, suspended, cancelled and deleted.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';

const { VIEWER, APPROVAL } = process.env;

async function on(browser, path, text, act, token) {
  const { page, complaints, close } = await signedIn(browser, {}, token);
  await page.goto(`${BASE}/console${path}`);
  await shown(page, path, text);
  await act(page);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 40[049]/.test(c)), []);
}

const row = (page, name) => page.locator('tbody tr', { has: page.getByRole('link', { name, exact: true }) });
const only = (page, ...want) => page.waitForFunction((w) => JSON.stringify([...document.querySelectorAll('main a.row')].map((a) => a.textContent)) === JSON.stringify(w), want);
const focused = (page) => page.evaluate(() => document.activeElement.textContent);
const to = async (page, key, name) => { // moves between rows with a key
  do await page.keyboard.press(key); while ((await focused(page)) !== name);
};
const offers = (page) => page.evaluate(() => [...document.querySelectorAll('.acts .tools button')].map((b) => b.textContent));

await run({
  'what they are about': (b) => on(b, '/tasks', 'lighthouse', async (page) => {
    const story = await row(page, 'story').innerText();
    assert.match(story, /Write a story about a lighthouse\. …/);
    assert.match(story, /Timed out: the task ran for longer than its timeout <img src=x/);
    assert.match(story, /1 min 02 s/);
    assert.match(await row(page, 'poem').innerText(), /<img src=x onerror="window\.pwned=1"><script>/); // as it was written
    assert.equal(await page.locator('main img, main script').count(), 0);
    await page.goto(`${BASE}/console/tasks/story`);
    await shown(page, 'the run', 'Timed out:');
    assert.match(await page.locator('dl.facts').innerText(), /1 min 02 s/);
  }),
  'filters in the address': (b) => on(b, '/tasks', 'lighthouse', async (page) => {
    await page.getByLabel('Labels', { exact: true }).fill('team=web');
    await page.keyboard.press('Enter');
    await only(page, 'poem', 'story');
    await page.getByLabel('Model', { exact: true }).fill('large-1');
    await page.keyboard.press('Tab');
    await only(page, 'story');
    await page.getByLabel('Model', { exact: true }).fill('');
    await page.keyboard.press('Enter');
    await page.getByLabel('Agent', { exact: true }).fill('helper');
    await page.keyboard.press('Enter');
    await page.getByLabel(/^Started/).selectOption('24h');
    await only(page, 'story');
    await page.getByLabel(/^Started/).selectOption('dates');
    const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
    await page.getByLabel(/^From\b/).fill(day(2));
    await page.getByLabel(/^to\b/).fill(day(2));
    await only(page, 'poem');
    await page.getByLabel(/^Started/).selectOption('');
    await page.getByLabel(/^Phase/).selectOption('failed');
    await only(page, 'story');
    await page.keyboard.press('Escape');
    await to(page, 'j', 'story');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/tasks/story');
    await page.goBack();
    await only(page, 'story');
    await page.reload(); // as a link shows them
    await only(page, 'story');
    assert.equal(await page.getByLabel('Labels', { exact: true }).inputValue(), 'team=web');
    await page.getByLabel('Labels', { exact: true }).fill('team in');
    await page.keyboard.press('Enter');
    await shown(page, 'a selector that is none', 'labelSelector');
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('link', { name: 'heap-4', exact: true }).waitFor();
    assert.ok(!page.url().includes('labels'), page.url());
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('LIGHTHOUSE');
    await only(page, 'story');
  }),
  'create': (b) => on(b, '/tasks', 'lighthouse', async (page) => {
    await page.getByRole('link', { name: /New task/ }).waitFor();
    await page.keyboard.press('n');
    await page.waitForURL('**/console/new');
    await page.getByLabel('Agent', { exact: true }).fill('nobody');
    await shown(page, 'an agent that there is not', 'There is no agent nobody');
    await page.getByLabel('Agent', { exact: true }).fill('helper');
    await page.getByText('There is no agent').waitFor({ state: 'detached' });
    await page.getByLabel('Name', { exact: true }).fill('story'); // taken
    await page.getByLabel('Priority', { exact: true }).fill('700');
    await page.getByLabel('Labels', { exact: true }).fill('team=web, bare');
    await page.getByLabel(/^Prompt/).focus();
    await page.keyboard.type('Count the boats.');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('All of them.');
    await page.keyboard.press('Enter');
    await shown(page, 'a name that is taken', 'already exists');
    await page.getByLabel('Name', { exact: true }).fill('made');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/console/tasks/made');
    await shown(page, 'the new task', 'Count the boats. …');
  }),
  'run again': (b) => on(b, '/tasks/story', 'lighthouse', async (page) => {
    await page.getByRole('button', { name: 'Retry' }).waitFor();
    assert.deepEqual(await offers(page), ['Retry', 'Delete']);
    await page.keyboard.press('R'); // chooses
    await page.keyboard.press('Enter'); // confirms
    await shown(page, 'what was done', '1 task was run again');
    await page.locator('.outcome a').click();
    await page.waitForURL('**/console/tasks/story-rerun-*');
    await shown(page, 'the new run', 'lighthouse');
    await page.goto(`${BASE}/console/tasks/story`);
    await page.getByRole('link', { name: 'Run with changes' }).click();
    const prompt = page.getByLabel(/^Prompt/);
    assert.match(await prompt.inputValue(), /^Write a story about a lighthouse\.\n</);
    await prompt.fill('Write a poem about a lighthouse.');
    await page.getByRole('button', { name: 'Create the task' }).click();
    await page.waitForURL('**/console/tasks/story-rerun-*');
    await shown(page, 'the run with changes', 'Write a poem');
  }),
  'suspend and resume': (b) => on(b, '/tasks/nightly', 'Suspend', async (page) => {
    for (const [now, next] of [['Suspend', 'Resume'], ['Resume', 'Suspend'], ['Suspend', 'Resume']]) {
      await page.getByRole('button', { name: now }).click();
      await page.getByRole('button', { name: next }).waitFor();
    }
  }),
  'several': (b) => on(b, '/tasks?labels=team%3Dheap&sort=name', 'heap-4', async (page) => {
    await page.getByLabel('Select heap-0').check(); // with the mouse
    await page.keyboard.press('j');
    assert.equal(await focused(page), 'heap-1');
    await page.keyboard.press('x'); // with the keyboard
    await shown(page, 'how many are selected', '2 selected');
    assert.deepEqual(await offers(page), ['Cancel 2', 'Delete 2']);
    await page.keyboard.press('C');
    assert.equal(await focused(page), 'Cancel 2');
    await page.keyboard.press('Enter');
    await shown(page, 'the question', 'Cancel 2 tasks, with everything below that has not ended?');
    await page.keyboard.press('Escape');
    await page.getByText('Cancel 2 tasks,').waitFor({ state: 'detached' });
    await page.keyboard.press('C');
    await page.keyboard.press('Enter');
    await page.keyboard.type('too deep');
    await page.keyboard.press('Enter');
    await shown(page, 'what was done', '2 tasks were cancelled');
    // One of them is deleted by somebody else in the moment before. The server refuses it, and the others are deleted.
    await page.route('**/tasks/heap-3', async (route) => (await route.fetch(), route.continue()));
    await page.getByLabel('Select heap-1').focus();
    for (const name of ['heap-2', 'heap-3', 'heap-4']) (await to(page, 'j', name), await page.keyboard.press('x'));
    await shown(page, 'how many are selected', '3 selected');
    await page.keyboard.press('D');
    await page.keyboard.press('Enter');
    await shown(page, 'the question', 'Delete 3 tasks, with events, results and everything below?');
    await page.getByRole('button', { name: 'Delete 3 tasks' }).click();
    await shown(page, 'what was done', '2 tasks were deleted');
    await shown(page, 'what was not', '1 task was not deleted');
    assert.match(await page.locator('.failures li').innerText(), /^heap-3: .*not found/);
    await only(page, 'heap-0', 'heap-1');
    await page.keyboard.press('a');
    await shown(page, 'all', '2 selected');
    await page.getByRole('button', { name: 'Select none' }).click();
    await page.goto(`${BASE}/console/tasks/poem`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete 1 task' }).click();
    await page.waitForURL('**/console/tasks');
  }),
  'what waits': (b) => on(b, '/tasks', 'lighthouse', async (page) => {
    await page.locator('header .badge').waitFor();
    await row(page, 'asks').getByRole('link', { name: 'Waiting for approval' }).click();
    await page.waitForURL(`**/approvals/${APPROVAL}`);
    await page.goto(`${BASE}/console/tasks/asks`);
    await page.getByRole('link', { name: 'remove the old files' }).click();
    await page.waitForURL(`**/approvals/${APPROVAL}`);
  }),
  'a viewer': (b) => on(b, '/new', 'does not permit you to create tasks', async (page) => { // so it is known what the viewer may do
    const nothing = async (path) => {
      assert.deepEqual(await offers(page), [], path);
      assert.equal(await page.locator('main input[type=checkbox], main a[href*="/new"]').count(), 0, path);
    };
    await page.getByRole('link', { name: 'Tasks' }).click();
    await page.getByRole('link', { name: 'story', exact: true }).waitFor();
    await nothing('/tasks');
    for (const name of ['story', 'made']) {
      await page.getByRole('link', { name, exact: true }).click();
      await page.locator('dl.facts').waitFor();
      await nothing(`/tasks/${name}`);
      await page.goBack();
    }
  }, VIEWER),
});
