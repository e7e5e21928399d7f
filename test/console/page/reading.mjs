// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What was said and done: in the form in which it is read best, as the model saw it, and beside another request or run.
import { BASE, assert, nodes, run, shown, signedIn } from './drive.mjs';
import { looks, rules } from './look.mjs';

const { VIEWER } = process.env;
const run1 = '/tasks/first-run';

async function on(browser, path, text, act, token) {
  const { page, complaints, close } = await signedIn(browser, { permissions: ['clipboard-read', 'clipboard-write'] }, token);
  await page.goto(`${BASE}/console${path}`);
  await shown(page, path, text);
  await act(page);
  await close();
  assert.deepEqual(complaints, []);
}

const copied = (page) => page.evaluate(() => navigator.clipboard.readText());

await run({
  ...looks({
    'reading-call': [`${run1}#seq=4`, 'limit=10'],
    'reading-result': [`${run1}#seq=5`, 'bytes:'],
    'reading-patch': [`${run1}#seq=14`, '+n=1'],
    'reading-image': [`${run1}#seq=18`, 'A drawing.'],
    'reading-requests': [`${run1}?tab=requests`, 'What it answered'],
    'reading-beside': [`${run1}?tab=requests&at=11&with=1`, 'only in request 3'],
    'reading-compare': ['/compare?a=first-run&b=second-run', 'First difference'],
    'reading-long': ['/tasks/wordy-run?tab=requests', 'Show earlier messages'],
  }),
  'forms': (b) => on(b, `${run1}#seq=4`, 'Code, sh', async (page) => {
    await shown(page, 'a large number', '12345678901234567890');
    const code = page.locator('.code').first();
    assert.equal(await code.locator('.numbers').innerText(), '1\n2\n3\n4\n5\n6');
    await page.locator('.json summary').first().focus();
    await page.keyboard.press('Enter'); // folds
    await code.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'As it was written: Arguments of file_write' }).click();
    await page.locator('pre.long', { hasText: '"path":"primes.sh"' }).waitFor();
    await page.goto(`${BASE}/console${run1}#seq=14`);
    const patch = page.locator('.patch');
    await patch.waitFor();
    assert.deepEqual(await patch.locator('del, ins').allInnerTexts(), ['-n=2', '+n=1', '--- a line that begins with two signs', '++++ and another one']);
    await page.goto(`${BASE}/console${run1}#seq=18`);
    const img = page.locator('.picture img');
    await img.waitFor();
    assert.deepEqual(await img.evaluate((i) => i.decode().then(() => [i.naturalWidth, i.naturalHeight])), [96, 64]);
  }),
  'copy': (b) => on(b, `${run1}#seq=4`, 'Code, sh', async (page) => {
    await page.getByRole('button', { name: 'Copy content' }).click();
    assert.equal(await copied(page), '#!/bin/bash\ncount=0\nlimit=10\nwhile [ $count -lt $limit ]; do\n  next\ndone\n');
    await page.getByRole('button', { name: 'Copy Arguments of file_write' }).press('Enter');
    await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith('{"content"'));
    await page.goto(`${BASE}/console/tasks/hostile-run?tab=requests&at=1`);
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error()))); // as without TLS
    await page.getByRole('button', { name: 'Copy Prompt' }).click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()).includes('onerror'));
  }),
  'requests': (b) => on(b, `${run1}?tab=requests`, 'What it answered', async (page) => {
    await shown(page, 'the newest request', 'It printed the first 10 primes.');
    await page.getByLabel('Request', { exact: true }).fill('2');
    await page.keyboard.press('Enter');
    await page.waitForURL('**at=6*');
    await page.keyboard.press('Escape');
    await shown(page, 'the second request', 'Now I run it.');
    assert.equal(await page.getByText('It printed').count(), 0);
    await page.keyboard.press('l');
    await page.waitForURL('**at=11*');
    await page.keyboard.press('h');
    await page.waitForURL('**at=6*');
    await page.keyboard.press('d');
    await page.waitForURL('**with=1*');
    await shown(page, 'two requests', '2 messages are in both, 0 only in request 1, 2 only in request 2. The tools are the same.');
    await page.locator('summary', { hasText: '2 messages that are in both' }).press('Enter');
    await shown(page, 'what is in both', 'You are careful.');
    await page.reload(); // the address holds both
    await shown(page, 'two requests', '2 messages are in both');
    await page.getByLabel('Beside request').fill('');
    await page.keyboard.press('Enter');
    await shown(page, 'one request', 'You are careful.');
  }),
  'search': (b) => on(b, `${run1}?tab=requests`, 'What it answered', async (page) => {
    await page.keyboard.press('/');
    await page.keyboard.type('LIMIT=10');
    await page.keyboard.press('Enter');
    await page.waitForURL('**said=LIMIT*');
    await shown(page, 'what was found', 'It came with one event.');
    assert.equal(await page.locator('mark').innerText(), 'limit=10');
    assert.deepEqual(await rules(page), []);
    await page.getByRole('link', { name: 'Model request completed #2' }).click();
    await page.waitForURL('**first-run#seq=2');
    await page.goBack();
    await page.getByRole('button', { name: 'Back to the requests' }).click();
    await shown(page, 'the requests', 'What it answered');
    await page.goto(`${BASE}/console${run1}?tab=requests&said=nowhere`);
    await shown(page, 'nothing', 'Nothing that was said in this run has this text.');
  }),
  'a tree as a graph': (b) => on(b, '/tree/first-run', 'delegated nothing', async (page) => {
    const node = (i) => ({ metadata: { name: `child-${i}`, uid: `u${i}` }, spec: { type: 'ai' }, status: {
      phase: ['Running', 'Succeeded', 'Failed'][i % 3], agentName: 'helper', startTime: new Date(Date.UTC(2026, 0, 1, 0, 0, i)).toISOString(),
      ...(i > 0 ? { delegation: { parent: 'p', root: 'first-run', rootUID: 'r', parentUID: i < 20 ? 'u0' : `u${i % 20}`, depth: i < 20 ? 1 : 2 } } : {}),
    } });
    const lines = Array.from({ length: 400 }, (_, i) => ({ type: 'ADDED', object: node(i) })); // only a worker can delegate
    lines.push({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } } });
    let asked = 0;
    await page.route(/rootTaskUID/, (route) => (asked++ ? undefined : route.fulfill({ contentType: 'application/json', body: `${lines.map((l) => JSON.stringify(l)).join('\n')}\n` })));
    await page.reload();
    await shown(page, 'the list', '400 tasks');
    await page.keyboard.press('v');
    await page.waitForURL('**as=graph*');
    await shown(page, 'the graph', '150 of 400 tasks are drawn');
    assert.equal(await page.locator('a.node').count(), 150);
    assert.ok((await nodes(page)) < 1500, `${await nodes(page)} nodes`);
    assert.deepEqual(await rules(page), []);
    const focused = (name) => page.waitForFunction((n) => document.activeElement.querySelector('b')?.textContent === n, name);
    for (const [key, name] of [['ArrowRight', 'child-1'], ['ArrowDown', 'child-2'], ['ArrowUp', 'child-1'], ['ArrowLeft', 'child-0'], [']', 'child-41'], ['j', 'child-61']]) {
      await page.keyboard.press(key);
      await focused(name);
    }
    await page.waitForURL('**at=child-61*');
    await page.getByRole('button', { name: /Draw the tasks below child-19, / }).click();
    await page.waitForURL('**below=child-19*');
    await page.waitForFunction(() => document.querySelectorAll('a.node').length === 20);
    await page.getByRole('button', { name: 'Show the whole tree' }).click();
    await page.waitForFunction(() => document.querySelectorAll('a.node').length === 150);
    await page.getByRole('button', { name: 'List' }).click();
    await page.locator('.tree .line').first().waitFor();
  }),
  'a long conversation': (b) => on(b, '/tasks/wordy-run?tab=requests', 'Show earlier messages', async (page) => {
    await shown(page, 'the first message', 'You are careful.');
    assert.equal(await page.locator('.transcript > .turn').count(), 22); // with the answer
    assert.ok((await nodes(page)) < 1500, `${await nodes(page)} nodes`);
  }),
  'compare by content': (b) => on(b, '/compare?a=first-run&b=second-run', 'First difference', async (page) => {
    await page.locator('.between').first().waitFor();
    const between = (label) => page.getByLabel(`What differs in the ${label}`).first().innerText();
    assert.match(await between('arguments'), /- +limit=10\n\+ +limit=20/);
    assert.match(await between('result'), /\+ {3,}11/);
    assert.match(await between('text'), /- It printed the \*\*first\*\* 10 primes\.\n\+ It printed the \*\*first\*\* 20 primes\./);
    assert.equal(await page.locator('.pair:not(.differs)', { hasText: 'draw returned' }).count(), 1); // after a step that only one has
    await page.locator('.pair', { hasText: 'file_read' }).locator('summary').first().click();
    await shown(page, 'the arguments of one', 'notes.md');
    assert.equal(await page.getByText('the size').count(), 0);
  }),
  'who may not read it': (b) => on(b, '/compare?a=first-run&b=second-run', 'You may not read what was recorded', async (page) => {
    assert.equal(await page.getByText('limit=').count(), 0);
    await page.goto(`${BASE}/console${run1}?tab=requests`);
    await shown(page, 'the requests', 'Your role does not permit it');
  }, VIEWER),
  'hostile texts': (b) => on(b, '/tasks/hostile-run', 'Tool call started', async (page) => {
    const check = async (path, text) => {
      await page.goto(`${BASE}/console${path}`);
      const seq = /#seq=(\d+)/.exec(path)?.[1];
      if (seq) await page.locator('.details h2', { hasText: new RegExp(`#${seq}$`) }).waitFor();
      await shown(page, path, text);
      assert.equal(await page.evaluate(() => window.pwned), undefined, path);
      assert.equal(await page.locator('main :is(img, script, iframe, style, link, base, object, svg)').count(), 0, path);
      assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b]/.test(await page.evaluate(() => document.body.innerText)), `${path}: characters that turn the text around`);
      assert.ok((await nodes(page)) < 4000, `${path}: ${await nodes(page)} nodes`);
    };
    const seqs = await page.evaluate(async () => {
      const r = await fetch('/apis/core.platform.ai/v1alpha1/namespaces/team/tasks/hostile-run/recording', { headers: { 'x-platform-console': localStorage.getItem('platform.console.key') } });
      return (await r.json()).entries.map((e) => e.seq);
    });
    for (const seq of seqs) await check(`/tasks/hostile-run#seq=${seq}`, 'Copy');
    for (const [path, text] of [['/tasks/hostile-run?tab=requests', 'What it answered'], [`/tasks/hostile-run?tab=requests&at=1&with=${seqs.at(-4)}`, 'only in request'], ['/compare?a=hostile-run&b=first-run', 'First difference']]) await check(path, text);
  }),
});
