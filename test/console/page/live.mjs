// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A page that follows a run for FOLLOW ms, while the server is killed KILLS times. The test kills it for each line "kill", and ends
// the run's writer for "stop", which it answers with the number of events.
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
// late counts by ms how long events took from when they were sent to when they were painted, while the server is there.
function watched() {
  const seen = { last: 0, wrong: [], late: new Uint32Array(5001), newest: 0, away: false };
  window.seen = seen;
  const look = () => {
    const rows = [...document.querySelectorAll('.rows .line')].map((r) => [Number(r.querySelector('.seq')?.textContent), r.querySelector('.what')?.textContent ?? '']).sort((a, b) => a[0] - b[0]);
    for (const [i, [seq, text]] of rows.entries()) {
      if (i > 0 && seq !== rows[i - 1][0] + 1) seen.wrong.push(`row ${seq} after ${rows[i - 1][0]}`);
      const [, n, at] = /^event (\d+) at (\d+)$/.exec(text) ?? [];
      if (text && n === undefined) continue; // of the server's own
      if (!text || seq <= seen.last) continue;
      seen.newest = Date.now() - Number(at);
      if (!seen.away && seen.last > 0) seen.late[Math.min(seen.newest, 5000)]++;
    }
    seen.last = Math.max(seen.last, ...rows.filter((r) => r[1]).map((r) => r[0]), 0);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

// part returns the number of ms within which a part of the events was painted.
function part(late, of) {
  let left = late.reduce((n, m) => n + m, 0) * of;
  return late.findIndex((n) => (left -= n) <= 0);
}

await run({
  'live': async (b) => {
    const { page, close } = await opened(b);
    await page.goto(LINK);
    await page.waitForSelector('header.top form');
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
    let longest = 0;
    for (let k = 0; k <= kills; k++) {
      await page.waitForTimeout(follow / (kills + 1));
      if (k === kills) break;
      const [from, began] = await page.evaluate(() => ((window.seen.away = true), [window.seen.last, Date.now()]));
      await ask('kill');
      await page.waitForFunction((n) => window.seen.last > n && window.seen.newest < 500, from, { timeout: 120_000 });
      await page.getByText(', live').waitFor();
      longest = Math.max(longest, Date.now() - began);
      await page.evaluate(() => (window.seen.away = false));
    }
    const after = await heap();
    const [late, shown] = await page.evaluate(() => [[...window.seen.late], window.seen.last]);
    console.log(`  following for ${Math.round(follow / 1000)} s with ${kills} kills: ${shown} events; of ${late.reduce((n, m) => n + m, 0)} seen as they were painted, half took ${part(late, 0.5)} ms from append to paint, 95 % ${part(late, 0.95)} ms (aim 250); at most ${Math.round(longest / 100) / 10} s from a kill to being live again; heap ${before} MB, then ${after} MB`);
    assert.ok(after - before < 8, `the heap grew from ${before} to ${after} MB`); // 60 pages of events at most, and the view
    const total = Number(await ask('stop'));
    await page.locator('.line', { hasText: `event ${total - 1} at` }).waitFor({ timeout: 120_000 });
    const { wrong } = await page.evaluate(() => window.seen);
    assert.deepEqual(wrong, []);
    // Every row, from the first to the last: none is missing, and none is there twice. A high window shows 200 of them at once.
    await page.setViewportSize({ width: 1280, height: 6000 });
    await page.waitForFunction(() => document.querySelectorAll('.rows .line').length > 150);
    const rows = await page.evaluate(async () => {
      const box = document.querySelector('.rows');
      const all = new Map();
      const again = [];
      for (let top = 0; top < box.scrollHeight; top += box.clientHeight) {
        box.scrollTop = top;
        for (let tries = 0; ; tries++) {
          await new Promise(requestAnimationFrame);
          const lines = [...document.querySelectorAll('.rows .line')];
          if (!box.classList.contains('passing') && lines.every((l) => l.querySelector('.kind')?.textContent)) {
            for (const l of lines) {
              const [seq, text] = [Number(l.querySelector('.seq').textContent), l.querySelector('.what').textContent];
              if (all.has(seq) && all.get(seq) !== text) again.push(seq);
              all.set(seq, text);
            }
            break;
          }
          if (tries > 3000) return { missing: `rows at ${top}` };
        }
      }
      return { again, seqs: [...all.keys()], events: [...all.values()].map((t) => /^event (\d+) /.exec(t)?.[1]).filter(Boolean).map(Number) };
    });
    assert.equal(rows.missing, undefined);
    assert.deepEqual(rows.again, []);
    const numbers = rows.events.sort((x, y) => x - y);
    const shownOnce = new Set(numbers);
    const missing = Array.from({ length: total }, (_, i) => i).filter((i) => !shownOnce.has(i));
    assert.deepEqual(missing, [], 'events that no row shows');
    assert.equal(numbers.length, total);
    numbers.forEach((n, i) => assert.equal(n, i, `event ${i} is missing or there twice`));
    await close();
    return `${kills} kills, ${total} events, each shown once`;
  },
});
process.stdin.destroy();
