// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the tasks of the demo leave behind: a tree, traces, results, and what models were used for.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';
import { looks } from './look.mjs';

// chat sends a turn that goes on without the page, finds it again after the page was loaded anew, cancels it, and goes on.
async function chat(b) {
  const { page, complaints, close } = await signedIn(b);
  await page.goto(`${BASE}/console/chat`);
  await page.getByLabel('Provider').selectOption('talk');
  await page.getByLabel('Go on when I leave').check();
  await page.getByLabel('Message').fill('wait for it');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/console/sessions/*');
  await shown(page, 'the turn', 'wait_for_task');
  await page.reload();
  await shown(page, 'the turn after the page was loaded anew', 'wait_for_task');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await shown(page, 'the turn that was cancelled', 'cancelled');
  await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
  await page.getByLabel('Provider').selectOption('talk');
  await page.getByLabel('Message').fill('hello');
  await page.keyboard.press('Enter');
  await shown(page, 'the next turn', 'Hello to you.');
  // The session is there before its messages, which are read once.
  await page.route('**/transcript*', async (route) => (await page.locator('dl.facts').waitFor(), route.continue()));
  let reads = 0;
  const twice = page.waitForEvent('requestfinished', (r) => r.url().includes('/transcript') && ++reads === 2);
  await page.reload();
  await twice;
  await shown(page, 'the conversation', 'Hello to you.');
  assert.equal(await page.getByText('Hello to you.').count(), 1);
  assert.deepEqual(complaints, []);
  await close();
}

// times: a run begins with its first event, and every view and every command says one length of it.
async function times(b) {
  const { page, complaints, close } = await signedIn(b);
  await page.goto(`${BASE}/console/tasks/primes`);
  await page.waitForFunction(() => document.querySelector('.line .at')?.innerText === '+00:00.000');
  const length = await page.locator('dl.facts div', { hasText: 'Duration' }).locator('dd').innerText();
  assert.match(length, /^(under 1 s|\d+ s|\d+ min.*)$/);
  const says = async (path, where) => {
    await page.goto(`${BASE}/console${path}`);
    await where.first().waitFor();
    const text = await where.first().innerText();
    assert.ok(text.split(/\s*[\t\n]\s*/).includes(length), `${path}: ${text}, not ${length}`);
  };
  await says('/tasks', page.locator('tbody tr', { has: page.getByRole('link', { name: 'primes', exact: true }) }));
  await says('/tree/primes', page.locator('.tree .line'));
  await says('/compare?a=primes&b=primes-again', page.locator('tr', { hasText: 'Duration' }));
  const command = length.replace('under ', '<').replace(' min ', 'm').replaceAll(' ', '');
  assert.equal(process.env.TOOK, `${command} ${command} ${command}`);
  for (const tab of ['trace', 'result']) await says(`/tasks/primes?tab=${tab}`, page.locator('dl.facts div', { hasText: 'Duration' }));
  assert.deepEqual(complaints, []);
  await close();
}

await run({ ...looks({
  'real-now': ['/', 'waiting for a decision'],
  'real-tasks': ['/tasks', 'primes-again'],
  'real-run': ['/tasks/primes#seq=7', '60 tokens in'],
  'real-call': ['/tasks/primes#seq=14', 'bash primes.sh'],
  'real-output': ['/tasks/primes#seq=15', 'exit_code: 0'],
  'real-asked': ['/tasks/primes#seq=11', 'What the model was asked'],
  'real-transcript': ['/tasks/primes?tab=transcript', 'I will write the program first'],
  'real-trace': ['/tasks/primes?tab=trace', 'Critical path'],
  'real-result': ['/tasks/primes?tab=result', 'It printed the first ten prime numbers'],
  'real-tree': ['/tree/report', '3 tasks'],
  'real-graph': ['/tree/report?as=graph', '3 tasks'],
  'real-requests': ['/tasks/primes?tab=requests', 'What it answered'],
  'real-decided': ['/approvals?state=all', 'approved'],
  'real-usage': ['/usage', 'requests to models'],
  'real-models': ['/usage?by=model', 'scripted-1'],
  'real-agents': ['/usage?by=agent', 'requests to models'],
  'real-compare': ['/compare?a=primes&b=primes-again', 'is a fork of'],
}), chat, times });
