// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a coding agent changed, by file, and the branch that has it.
import { BASE, assert, run, shown, signedIn } from './drive.mjs';
import { looks } from './look.mjs';

const { NAME } = process.env;

async function delivered(browser) {
  const { page, complaints, close } = await signedIn(browser);
  await page.goto(`${BASE}/console/tasks/mends?tab=changes`);
  await shown(page, 'the diff', '7 files changed');
  assert.deepEqual(await page.locator('.steps li a').allInnerTexts(), ['Validating', 'Preparing', 'Prepared', 'Publishing', 'Verifying', 'Verified exact']);
  const facts = await page.getByRole('region', { name: 'Delivery' }).innerText();
  for (const want of ['no commit: there was no such branch', 'Run began with', 'Its tree', 'published as branch mend-greeting']) assert.ok(facts.includes(want), facts);
  const link = page.getByRole('link', { name: '#7 (git.example.com)' });
  assert.equal(await link.getAttribute('href'), 'https://git.example.com/team/shop/pulls/7');

  const files = page.locator('details.file');
  const named = (name) => files.filter({ has: page.locator('summary bdi', { hasText: name }) });
  assert.deepEqual((await files.locator('summary bdi').allInnerTexts()).sort(), [NAME, 'empty', 'greet.sh', 'logo.bin', 'many.txt', 'old.txt', 'run.sh'].sort());
  assert.match(await named('greet.sh').locator('summary').innerText(), /greet\.sh\s+\+1 −1/);
  assert.deepEqual(await named('greet.sh').locator('del, ins').allInnerTexts(), ['-echo "Helo, ${1:-world}!"', '+echo "Hello, ${1:-world}!"']);
  assert.match(await named('logo.bin').innerText(), /logo\.bin new binary\s+A binary file/);
  assert.match(await named('run.sh').innerText(), /Mode: 100644 → 100755/);
  assert.match(await named('old.txt').locator('summary').innerText(), /deleted\s+\+0 −1/);
  assert.match(await named('empty').innerText(), /An empty file/);
  // What looks like a header of a diff is a line of the file, and HTML is text.
  assert.match(await named(NAME).innerText(), /\+<img src=x onerror="window\.pwned=1"><script>.*\n\+diff --git a\/x b\/x\n\+--- a\/x/);
  // A long one is folded, and none of it is drawn before somebody unfolds it.
  assert.equal(await named('many.txt').locator('pre').count(), 0);
  await page.keyboard.press('j');
  await page.waitForFunction(() => document.activeElement?.tagName === 'SUMMARY');
  await named('many.txt').locator('summary').press('Enter');
  await named('many.txt').locator('pre').waitFor();
  assert.equal(await page.locator('main img, main script').count(), 0);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.deepEqual(complaints, []);
  await close();
}

await run({ ...looks({ 'coding-delivered': ['/tasks/mends?tab=changes', '7 files changed'] }), delivered });
