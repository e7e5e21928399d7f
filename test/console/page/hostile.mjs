// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Texts that try to be more than texts.
import { BASE, assert, nodes, run, shown, signedIn } from './drive.mjs';

const { APPROVAL, RISKY } = process.env;

async function harmless(browser, paths) {
  const { page, complaints, close } = await signedIn(browser);
  for (const [path, text] of paths) {
    await page.goto(`${BASE}/console${path}`);
    await shown(page, path, text);
    assert.equal(await page.evaluate(() => window.pwned), undefined, path);
    assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main script, main iframe, main style, main link, main base, main object, main svg:not([aria-label*=" bars, at most "])').length), 0, path);
    const links = await page.evaluate(() => [...document.querySelectorAll('main a')].map((a) => [a.protocol, a.origin === location.origin, a.rel, a.textContent]));
    for (const [protocol, own, rel, shown] of links) {
      assert.match(protocol, /^https?:$/, path);
      if (!own) assert.match(rel, /noopener/, path);
      if (/bank/.test(shown)) assert.match(shown, /evil\.example/, 'a link that does not show where it leads');
    }
    assert.ok(!/[\u202a-\u202e\u2066-\u2069\u200b]/.test(await page.evaluate(() => document.body.innerText)), `${path}: characters that turn the text around`);
    assert.ok((await nodes(page)) < 3000, `${path}: ${await nodes(page)} nodes`);
  }
  await close();
  assert.deepEqual(complaints.filter((c) => !/status of 404/.test(c)), []); // no turn of the session goes on
}

// refusing shows errors whose texts are hostile.
async function refusing(browser) {
  const { page, close } = await signedIn(browser);
  const text = '<img src=x onerror="window.pwned=1">\u202egnp.exe [a](javascript:window.pwned=1)';
  await page.route('**/apis/core.platform.ai/**', (r) => r.fulfill({ status: 500, contentType: 'application/json', body: JSON.stringify({ message: text, reason: text }) }));
  for (const path of ['/', '/tasks', '/tasks/hostile', '/approvals', '/sessions/hostile', '/usage', '/catalogue', '/memory', '/monitors', '/monitors/hostile', '/monitors/hostile/hostile.pr-7', '/gateways', '/gateways?tab=events', '/gateways/hostile', '/gateways/hostile?tab=deliveries', '/gateways/hostile/none', '/compare?a=hostile&b=plain']) {
    await page.goto(`${BASE}/console${path}`);
    await shown(page, path, 'onerror');
    assert.equal(await page.evaluate(() => window.pwned), undefined, path);
    assert.equal(await page.evaluate(() => document.querySelectorAll('main img, main a[href^="javascript"]').length), 0, path);
    assert.ok(!/\u202e/.test(await page.evaluate(() => document.body.innerText)), `${path}: a character that turns the text around`);
  }
  await close();
}

await run({
  'events': (b) => harmless(b, Array.from({ length: 30 }, (_, i) => [`/tasks/hostile#seq=${i + 1}`, ['Text', 'Call', 'Severity'][i % 3]])),
  'transcript, result, YAML': (b) => harmless(b, [['/tasks/hostile?tab=transcript', 'window.pwned'], ['/tasks/hostile?tab=yaml', 'onerror'], ['/tasks/hostile?tab=trace', 'Critical path'], ['/tasks/hostile?tab=result', 'onerror'], ['/tasks/hostile', 'onerror'], ['/tasks/changed?tab=changes', 'onerror']]),
  'other objects': (b) => harmless(b, [
    ['/tasks/hostile?tab=artifacts', 'invoice'], ['/tasks/hostile?tab=log', 'onerror'], ['/tree/hostile', 'delegated nothing'], ['/compare?a=hostile&b=plain', 'onerror'],
    ['/sessions', 'hostile'], ['/sessions/hostile', 'onerror'], ['/usage', 'Tasks without an issue'], ['/usage?by=model', 'onerror'], ['/catalogue', 'hostile'], ['/catalogue?kind=tools', 'onerror'], ['/catalogue?kind=skills', 'onerror'],
    ['/catalogue/agents/hostile', 'onerror'], ['/catalogue/tools/hostile', 'onerror'], ['/catalogue/skills/hostile', 'onerror'], ['/memory', 'onerror'], ['/memory?tab=memories', 'onerror'],
    ['/monitors', 'hostile'], ['/monitors/hostile', 'onerror'], ['/monitors/hostile?tab=commands', 'onerror'], ['/monitors/hostile/hostile.pr-7', 'onerror'], ['/monitors/hostile/hostile.issue-9', 'onerror'],
    ['/gateways', 'onerror'], ['/gateways?tab=events', 'onerror'], ['/gateways?tab=deliveries', 'onerror'], ['/gateways/hostile', 'onerror'], ['/gateways/hostile?tab=bindings', 'onerror'], ['/gateways/hostile?tab=yaml', 'onerror'],
  ]),
  'an approval': (b) => harmless(b, [['/approvals', 'onerror'], [`/approvals/${APPROVAL}`, 'onerror'], [`/approvals/${RISKY}`, 'javascript:'], ['/', 'onerror']]),
  'what a server says': (b) => refusing(b),
});
