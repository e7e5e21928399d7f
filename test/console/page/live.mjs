// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A page that follows a run for FOLLOW ms, and then through KILLS kills of the server. The test kills it for each line "kill",
// and ends the run's writer for "stop", which it answers with the number of events.
import { createInterface } from 'node:readline';
import { BASE, assert, opened, run } from './drive.mjs';

const { LINK } = process.env;
const follow = Number(process.env.FOLLOW);
const kills = Number(process.env.KILLS);
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ask = async (what) => {
  console.log(what);
  return (await answers.next()).value;
};

// watched looks at what is painted, in each frame: the rows must follow each other, and each be what its number says.
function watched() {
  const seen = { last: 0, wrong: [], late: [], frames: 0 };
  window.seen = seen;
  const look = () => {
    const rows = [...document.querySelectorAll('.rows .line')].map((r) => [Number(r.querySelector('.seq')?.textContent), r.querySelector('.what')?.textContent ?? '']).sort((a, b) => a[0] - b[0]);
    seen.frames++;
    for (const [i, [seq, text]] of rows.entries()) {
      if (i > 0 && seq !== rows[i - 1][0] + 1) seen.wrong.push(`row ${seq} after ${rows[i - 1][0]}`);
      const [, n, at] = /^event (\d+) at (\d+)$/.exec(text) ?? [];
      if (text && n === undefined) continue; // of the server's own
      if (text && seq > seen.last) seen.late.push(Date.now() - Number(at));
    }
    seen.last = Math.max(seen.last, ...rows.filter((r) => r[1]).map((r) => r[0]), 0);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)] ?? 0;

await run({
  'live': async (b) => {
    const { page, close } = await opened(b);
    await page.goto(LINK);
    await page.waitForSelector('header.top');
    await page.goto(`${BASE}/console/tasks/live`);
    await page.locator('.line', { hasText: /event \d+ at/ }).first().waitFor();
    await page.getByText(', live').waitFor();
    await page.evaluate(watched);
    const session = await page.context().newCDPSession(page);
    const heap = async () => {
      await session.send('HeapProfiler.collectGarbage');
      return Math.round((await session.send('Runtime.getHeapUsage')).usedSize / 1e5) / 10;
    };
    await page.waitForTimeout(Math.min(2000, follow / 2)); // the caches of pages fill
    const before = await heap();
    await page.waitForTimeout(follow);
    const after = await heap();
    const calm = await page.evaluate(() => ({ ...window.seen, late: window.seen.late.splice(0) }));
    console.log(`  following for ${Math.round(follow / 1000)} s: ${calm.last} events, ${calm.late.length} seen as they were painted, p95 from append to paint ${p95(calm.late)} ms (aim 250), heap ${before} MB, then ${after} MB`);
    assert.ok(after - before < 8, `the heap grew from ${before} to ${after} MB`); // 60 pages of events at most, and the view
    for (let k = 0; k < kills; k++) {
      await ask('kill');
      const from = await page.evaluate(() => window.seen.last);
      await page.waitForFunction((n) => window.seen.last > n, from, { timeout: 120_000 });
      await page.getByText(', live').waitFor();
    }
    const total = Number(await ask('stop'));
    await page.locator('.line', { hasText: `event ${total - 1} at` }).waitFor({ timeout: 120_000 });
    const { wrong, last } = await page.evaluate(() => window.seen);
    assert.deepEqual(wrong, []);
    // Every row, from the first to the last: none is missing, and none is there twice.
    const rows = await page.evaluate(async (last) => {
      const box = document.querySelector('.rows');
      const all = new Map();
      const again = [];
      for (let top = 0; all.size < last; top += box.clientHeight) {
        box.scrollTop = top;
        for (let tries = 0; ; tries++) {
          await new Promise(requestAnimationFrame);
          const lines = [...document.querySelectorAll('.rows .line')];
          if (lines.every((l) => l.querySelector('.what'))) {
            for (const l of lines) {
              const [seq, text] = [Number(l.querySelector('.seq').textContent), l.querySelector('.what').textContent];
              if (all.has(seq) && all.get(seq) !== text) again.push(seq);
              all.set(seq, text);
            }
            break;
          }
          if (tries > 3000) return { missing: `rows at ${top}` };
        }
        if (top > box.scrollHeight) break;
      }
      return { again, seqs: [...all.keys()], events: [...all.values()].map((t) => /^event (\d+) /.exec(t)?.[1]).filter(Boolean).map(Number) };
    }, last);
    assert.equal(rows.missing, undefined);
    assert.deepEqual(rows.again, []);
    const numbers = rows.events.sort((x, y) => x - y);
    assert.equal(numbers.length, total);
    numbers.forEach((n, i) => assert.equal(n, i, `event ${i} is missing or there twice`));
    await close();
    return `${kills} kills, ${total} events, each shown once`;
  },
});
process.stdin.destroy();
