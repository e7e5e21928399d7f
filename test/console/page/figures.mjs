// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What runs of SIZES events, and a trace of SPANS spans, cost a page whose processor is four times slower. Times depend on the
// machine and are printed beside the aims: the median of RUNS fresh pages, after one that warms up the browser. Counts are the
// page's own and are checked. PROFILE, if set, is a folder for profiles of the processor.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { BASE, assert, nodes, run, signedIn } from './drive.mjs';

const { SIZES, SPANS, PROFILE } = process.env;
const runs = Number(process.env.RUNS);
const rows = [];
const row = (what, figure, unit, aim, checked = false) => {
  rows.push({ what, figure, unit, aim });
  if (checked) assert.ok(figure <= aim, `${what}: ${figure} ${unit}, at most ${aim}`);
};
const median = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;
const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)] ?? 0;

// seen notes in the page when an element with a text was first painted.
const seen = ([selector, text]) => {
  const look = () => {
    const found = [...document.querySelectorAll(selector)].some((e) => e.textContent.includes(text));
    if (!found) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => (window.seenAt = performance.now())));
  };
  requestAnimationFrame(look);
};

// jump goes to an event of the run that is shown, and returns how long it takes until its line and its details are painted, in ms.
const jump = (seq) => new Promise((done, fail) => {
  const from = performance.now();
  const look = () => {
    const line = document.querySelector('.line[aria-selected=true]');
    const title = document.querySelector('.side .details h2');
    if (performance.now() - from > 30_000) return fail(new Error(`event ${seq} is not shown`));
    if (!line || !title?.textContent.includes(`#${seq}`)) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - from)));
  };
  location.hash = `seq=${seq}`;
  requestAnimationFrame(look);
});

async function slow(browser) {
  const it = await signedIn(browser);
  await it.page.waitForSelector('main h1');
  await it.page.goto('about:blank');
  const session = await it.page.context().newCDPSession(it.page);
  for (const domain of ['Network', 'Profiler']) await session.send(`${domain}.enable`);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' }); // what others do on the machine does not count
  await session.send('Emulation.setCPUThrottlingRate', { rate: 4 });
  const count = { requests: 0, bytes: 0, paths: [] };
  session.on('Network.requestWillBeSent', (e) => (count.requests++, count.paths.push(e.request.url.slice(BASE.length))));
  session.on('Network.dataReceived', (e) => (count.bytes += e.encodedDataLength));
  // spent returns what the page has used of a processor, in ms.
  const spent = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    const metric = (m) => Math.round(1000 * (metrics.find((x) => x.name === m)?.value ?? 0));
    return { tasks: metric('TaskDuration'), script: metric('ScriptDuration'), layout: metric('LayoutDuration') + metric('RecalcStyleDuration') };
  };
  return { ...it, session, count, spent };
}

// open shows a path in a fresh page until an element with a text is painted.
async function open(browser, name, path, selector, text) {
  const it = await slow(browser);
  await it.page.addInitScript(seen, [selector, text]);
  if (PROFILE) await it.session.send('Profiler.start');
  await it.page.goto(`${BASE}/console${path}`);
  await it.page.waitForFunction(() => window.seenAt);
  if (PROFILE) writeFileSync(`${PROFILE}/${name}.cpuprofile`, JSON.stringify((await it.session.send('Profiler.stop')).profile));
  const spent = await it.spent();
  const [at, paint] = await it.page.evaluate(() => [window.seenAt, performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]);
  if (PROFILE) {
    const times = await it.page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((e) => [e.startTime, e.responseStart, e.responseEnd, e.name, e.domInteractive]));
    for (const [from, first, to, what, dom] of times) console.log(`${name} ${[from, first, to].map((n) => Math.round(n).toString().padStart(5)).join(' ')} ${what.slice(BASE.length)} ${dom ?? ''}`);
  }
  return { ...it, at: Math.round(at), paint: Math.round(paint), ...spent };
}

// several opens a path in one page after the other, and returns the last one with the medians of all.
async function several(...args) {
  const all = [];
  for (let i = 1; i < runs; i++) {
    const it = await open(...args);
    all.push(it);
    await it.close();
  }
  const last = await open(...args);
  all.push(last);
  return { ...last, ...Object.fromEntries(['at', 'paint', 'tasks', 'script', 'layout'].map((key) => [key, median(all.map((it) => it[key]))])) };
}

async function one(b, size) {
  const name = `run${size}`;
  const it = await several(b, name, `/tasks/${name}`, '.line .what', `words ${size - 2}`);
  const { page, session, count } = it;
  const { requests, bytes, paths } = count;
  row(`${size} events: usable`, it.at, 'ms', 800);
  row(`${size} events: first paint`, it.paint, 'ms', 300);
  row(`${size} events: processor until then`, it.tasks, 'ms', '');
  row(`${size} events: of it scripts`, it.script, 'ms', '');
  row(`${size} events: of it layout`, it.layout, 'ms', '');
  row(`${size} events: requests`, requests, '', 10);
  row(`${size} events: received`, Math.round(bytes / 1000), 'KB', 300, true);
  assert.ok(requests <= 11, `${requests} requests: ${paths.join(' ')}`); // 10, and the style sheet's or the page's revalidation
  if (PROFILE) console.log(paths.join('\n'));
  await page.getByText(', live').waitFor();
  const before = await it.spent();
  if (PROFILE) await session.send('Profiler.start');
  const scroll = () => page.evaluate(async () => {
    const tasks = [];
    new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
    const rows = document.querySelector('.rows');
    const frames = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 300; i >= 0; i--) {
      rows.scrollTop = ((rows.scrollHeight - rows.clientHeight) * i) / 300;
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - last);
      last = now;
    }
    await new Promise((r) => setTimeout(r));
    return { frames, longest: Math.max(0, ...tasks) };
  });
  const passes = [];
  for (let i = 0; i < runs; i++) passes.push(await scroll());
  const frames = { longest: median(passes.map((p) => p.longest)), p95: median(passes.map((p) => p95(p.frames))), n: passes.reduce((n, p) => n + p.frames.length, 0) };
  const after = await it.spent();
  if (PROFILE) writeFileSync(`${PROFILE}/${name}-scroll.cpuprofile`, JSON.stringify((await session.send('Profiler.stop')).profile));
  row(`${size} events: processor of a frame of scrolling`, Math.round(10 * (after.tasks - before.tasks) / frames.n) / 10, 'ms', '');
  if (PROFILE) console.log('scroll', JSON.stringify(before), JSON.stringify(after));
  await page.locator('.line', { hasText: 'words 0' }).first().waitFor();
  row(`${size} events: p95 frame of scrolling`, Math.round(frames.p95), 'ms', 20);
  row(`${size} events: longest task of scrolling`, Math.round(frames.longest), 'ms', 100);
  row(`${size} events: elements`, await nodes(page), '', 1500, true);
  await session.send('HeapProfiler.collectGarbage');
  row(`${size} events: heap`, Math.round((await session.send('Runtime.getHeapUsage')).usedSize / 1e6), 'MB', 80, true);
  const jumps = [];
  for (let i = 1; i <= runs; i++) jumps.push(await page.evaluate(jump, Math.floor((size * i) / (runs + 1))));
  row(`${size} events: jump to #seq= in the open run`, Math.round(median(jumps)), 'ms', 500);
  await it.close();
  assert.deepEqual(it.complaints, []);

  const at = await several(b, `${name}-seq`, `/tasks/${name}#seq=${size - 1}`, '.side .details h2', `#${size - 1}`);
  row(`${size} events: link to #seq=${size - 1}, opened anew`, at.at, 'ms', 800);
  row(`${size} events: processor until then`, at.tasks, 'ms', '');
  await at.close();
}

async function trace(b) {
  const it = await open(b, 'trace', '/tasks/spans', '.line .what', 'the file was read');
  const { page } = it;
  await page.evaluate(() => {
    const painted = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (...args) {
      painted.apply(this, args);
      if (args[0] === 'file_read') window.drawnAt ??= performance.now();
    };
    document.getElementById('tab-trace').addEventListener('click', () => (window.clickedAt = performance.now()), true);
  });
  if (PROFILE) await it.session.send('Profiler.start');
  const bytes = it.count.bytes;
  await page.evaluate(() => document.getElementById('tab-trace').click());
  await page.waitForFunction(() => window.drawnAt);
  if (PROFILE) writeFileSync(`${PROFILE}/waterfall.cpuprofile`, JSON.stringify((await it.session.send('Profiler.stop')).profile));
  row(`waterfall of ${SPANS} spans`, Math.round(await page.evaluate(() => window.drawnAt - window.clickedAt)), 'ms', 200);
  row(`waterfall of ${SPANS} spans: received`, Math.round((it.count.bytes - bytes) / 1000), 'KB', '');
  row(`waterfall of ${SPANS} spans: elements`, await nodes(page), '', 1500, true);
  await it.close();
  assert.deepEqual(it.complaints, []);
}

await run({
  'figures': async (b) => {
    const dist = new URL('../../../pkg/console/dist/', import.meta.url);
    const scripts = readdirSync(dist).filter((f) => f.endsWith('.js'));
    row('scripts, compressed', Math.round(scripts.reduce((n, f) => n + gzipSync(readFileSync(new URL(f, dist)), { level: 9 }).length, 0) / 100) / 10, 'KB', 70, true);
    await (await open(b, 'warm', `/tasks/run${SIZES.split(',')[0]}`, '.line .what', 'words')).close();
    const floor = await several(b, 'floor', '/licenses.txt', 'pre', 'Copyright');
    row('a page of text: painted', floor.at, 'ms', '');
    row('a page of text: first paint', floor.paint, 'ms', '');
    row('a page of text: processor until then', floor.tasks, 'ms', '');
    await floor.close();
    for (const size of SIZES.split(',')) await one(b, Number(size));
    await trace(b);
    const line = (r) => `  ${r.what.padEnd(48)} ${String(r.figure).padStart(8)} ${r.unit.padEnd(3)} ${r.aim === '' ? '' : `aim ${r.aim}`}`;
    return `\n${rows.map(line).join('\n')}\n `;
  },
});
