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

// seen notes in the page when an element with a text was first painted, and says so: to look for it from outside, a script is put into
// the page that takes as long to compile as the page's own.
const seen = ([selector, text]) => {
  const look = () => {
    const found = [...document.querySelectorAll(selector)].some((e) => e.textContent.includes(text));
    if (!found) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => ((window.seenAt = performance.now()), console.log('seen'))));
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
  const painted = it.page.waitForEvent('console', (m) => m.text() === 'seen');
  await it.page.goto(`${BASE}/console${path}`, { waitUntil: 'commit' });
  await painted;
  // A slow machine begins with what follows the first rows before it has shown them: the most are all requests of the page, each once.
  const until = { requests: new Set(it.count.paths).size, bytes: it.count.bytes, paths: [...it.count.paths] };
  if (PROFILE) writeFileSync(`${PROFILE}/${name}.cpuprofile`, JSON.stringify((await it.session.send('Profiler.stop')).profile));
  const spent = await it.spent();
  const [at, paint] = await it.page.evaluate(() => [window.seenAt, performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]);
  if (PROFILE) {
    const times = await it.page.evaluate(() => performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((e) => [e.startTime, e.responseStart, e.responseEnd, e.name, e.domInteractive]));
    for (const [from, first, to, what, dom] of times) console.log(`${name} ${[from, first, to].map((n) => Math.round(n).toString().padStart(5)).join(' ')} ${what.slice(BASE.length)} ${dom ?? ''}`);
  }
  return { ...it, until, at: Math.round(at), paint: Math.round(paint), ...spent };
}

const medians = (all) => ({ ...all.at(-1), ...Object.fromEntries(['at', 'paint', 'tasks', 'script', 'layout'].map((key) => [key, median(all.map((it) => it[key]))])) });

// several opens each of some pages in turn, as often as there are runs, and returns the medians of each. In turn, because a browser
// gets faster, and a machine slower, while they are measured.
async function several(browser, pages) {
  const all = pages.map(() => []);
  for (let i = 0; i < runs; i++) {
    for (const [p, args] of pages.entries()) {
      const it = await open(browser, ...args);
      all[p].push(it);
      await it.close();
    }
  }
  return all.map(medians);
}

// scroll moves through the rows in steps, one for each frame. seen is how many of the frames showed a row without its text.
const scroll = async ([from, step, steps]) => {
  const tasks = [];
  new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
  const rows = document.querySelector('.rows');
  const most = rows.scrollHeight - rows.clientHeight;
  rows.scrollTop = most * from;
  const frames = [];
  let bare = 0;
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < steps; i++) {
    rows.scrollTop = step ? rows.scrollTop + step : most * (from - (i + 1) / steps); // sums of rounded steps do not end at 0
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    if (document.querySelector('.line.waiting, .rows.passing')) bare++;
  }
  await new Promise((r) => setTimeout(r));
  return { frames, bare, longest: Math.max(0, ...tasks) };
};

const end = [1, 0, 300]; // from the end to the beginning
const wheel = [0.5, 120, 300]; // a notch of a wheel in each frame

// one measures a run, of which opened are the times until it is usable, in a page that is the only one.
async function one(browser, args, opened, size) {
  const it = await open(browser, ...args);
  const { page, session } = it;
  const { requests, bytes, paths } = it.until;
  row(`${size} events: usable`, opened.at, 'ms', 800);
  row(`${size} events: first paint`, opened.paint, 'ms', 300);
  row(`${size} events: processor until then`, opened.tasks, 'ms', '');
  row(`${size} events: of it scripts`, opened.script, 'ms', '');
  row(`${size} events: of it layout`, opened.layout, 'ms', '');
  if (PROFILE || requests > 12) console.log(paths.join('\n'));
  row(`${size} events: requests until then`, requests, '', 12, true);
  row(`${size} events: received until then`, Math.round(bytes / 1000), 'KB', 300, true);
  await page.getByText(', live').waitFor();
  for (const [how, steps] of [['end to end', end], ['a wheel', wheel]]) {
    const before = await it.spent();
    if (PROFILE) await session.send('Profiler.start');
    const passes = [];
    for (let i = 0; i < runs; i++) passes.push(await page.evaluate(scroll, steps));
    const after = await it.spent();
    if (PROFILE) writeFileSync(`${PROFILE}/run${size}-${how}.cpuprofile`, JSON.stringify((await session.send('Profiler.stop')).profile));
    row(`${size} events, ${how}: p95 frame`, Math.round(median(passes.map((p) => p95(p.frames)))), 'ms', 20);
    row(`${size} events, ${how}: longest task`, Math.round(median(passes.map((p) => p.longest))), 'ms', 100);
    row(`${size} events, ${how}: processor of a frame`, Math.round(10 * (after.tasks - before.tasks) / (runs * steps[2])) / 10, 'ms', '');
    row(`${size} events, ${how}: frames with a row that is not read yet`, median(passes.map((p) => p.bare)), `of ${steps[2]}`, '');
    if (steps === end) await page.locator('.line', { hasText: 'words 0' }).first().waitFor();
  }
  row(`${size} events: elements`, await nodes(page), '', 1500, true);
  await session.send('HeapProfiler.collectGarbage');
  row(`${size} events: heap`, Math.round((await session.send('Runtime.getHeapUsage')).usedSize / 1e5) / 10, 'MB', 80, true);
  const jumps = [];
  for (let i = 1; i <= runs; i++) {
    await page.evaluate(jump, Math.floor((size * i) / (runs + 2)));
    jumps.push(await page.evaluate(jump, size - i));
  }
  row(`${size} events: jump to #seq=${size - 1} in the open run`, Math.round(median(jumps)), 'ms', 500);
  await it.close();
  assert.deepEqual(it.complaints, []);
}

async function sizes(b) {
  const all = SIZES.split(',').map(Number);
  const pages = all.map((size) => [`run${size}`, `/tasks/run${size}`, '.line .what', `words ${size - 2}`]);
  const opened = await several(b, pages);
  for (const [i, size] of all.entries()) await one(b, pages[i], opened[i], size);
  const linked = await several(b, all.map((size) => [`run${size}-seq`, `/tasks/run${size}#seq=${size - 1}`, '.side .details h2', `#${size - 1}`]));
  for (const [i, at] of linked.entries()) {
    row(`${all[i]} events: link to #seq=${all[i] - 1}, opened anew`, at.at, 'ms', 500);
    row(`${all[i]} events: processor until then`, at.tasks, 'ms', '');
  }
  // What a longer run costs more.
  const of = (size, what) => rows.find((r) => r.what === `${size} events: ${what}`)?.figure ?? 0;
  for (const size of all.slice(1)) {
    for (const what of ['usable', 'processor until then', 'heap']) row(`${what}, ${size} events beside ${all[0]}`, Math.round(100 * (of(size, what) / of(all[0], what) - 1)), '%', 10);
  }
}

async function trace(b) {
  const it = await open(b, 'trace', '/tasks/spans', '.line .what', 'the file was read');
  const { page } = it;
  await page.evaluate((spans) => {
    const painted = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (...args) {
      painted.apply(this, args);
      if (args[0] !== 'file_read') return;
      window.drawnAt ??= performance.now();
      if (this.canvas.getAttribute('aria-label').startsWith(`${spans} spans`)) window.allAt ??= performance.now();
    };
    document.getElementById('tab-trace').addEventListener('click', () => (window.clickedAt = performance.now()), true);
  }, SPANS);
  if (PROFILE) await it.session.send('Profiler.start');
  const bytes = it.count.bytes;
  await page.evaluate(() => document.getElementById('tab-trace').click());
  await page.waitForFunction(() => window.allAt);
  if (PROFILE) writeFileSync(`${PROFILE}/waterfall.cpuprofile`, JSON.stringify((await it.session.send('Profiler.stop')).profile));
  row(`waterfall of ${SPANS} spans: the first of them`, Math.round(await page.evaluate(() => window.drawnAt - window.clickedAt)), 'ms', 200);
  row(`waterfall of ${SPANS} spans: all of them`, Math.round(await page.evaluate(() => window.allAt - window.clickedAt)), 'ms', 200);
  row(`waterfall of ${SPANS} spans: received`, Math.round((it.count.bytes - bytes) / 1000), 'KB', '');
  row(`waterfall of ${SPANS} spans: elements`, await nodes(page), '', 1500, true);
  await it.close();
  assert.deepEqual(it.complaints, []);
}

// tree shows NODES tasks that one task delegated. The list is the script's, because only a worker can delegate.
async function tree(b) {
  const many = 2500;
  const it = await slow(b);
  const { page } = it;
  const node = (i) => ({ metadata: { name: `child-${i}`, uid: `u${i}` }, spec: { type: 'ai' }, status: {
    phase: ['Running', 'Succeeded', 'Failed'][i % 3], agentName: 'helper', startTime: new Date(Date.UTC(2026, 0, 1, 0, 0, i)).toISOString(),
    delegation: { parent: 'p', root: 'spans', rootUID: 'r', parentUID: i < 50 ? 'u' : `u${i % 50}`, depth: i < 50 ? 1 : 2 }, usage: { inputTokens: i, outputTokens: 1 },
  } });
  const lines = Array.from({ length: many }, (_, i) => ({ type: 'ADDED', object: node(i) }));
  lines.push({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } } } });
  let asked = 0;
  await page.route(/rootTaskUID/, (route) => (asked++ ? undefined : route.fulfill({ contentType: 'application/json', body: lines.map((l) => JSON.stringify(l)).join('\n') + '\n' })));
  await page.addInitScript(seen, ['.tree .line', 'child-0']);
  await page.goto(`${BASE}/console/tree/spans`);
  await page.waitForFunction(() => window.seenAt);
  row(`tree of ${many} tasks: painted`, Math.round(await page.evaluate(() => window.seenAt)), 'ms', '');
  row(`tree of ${many} tasks: elements`, await nodes(page), '', 1500, true);
  const passed = await page.evaluate(scroll, [0, 120, 300]);
  row(`tree of ${many} tasks, a wheel: p95 frame`, Math.round(p95(passed.frames)), 'ms', 20);
  await it.close();
  assert.deepEqual(it.complaints, []);
}

await run({
  'figures': async (b) => {
    const dist = new URL('../../../pkg/console/dist/', import.meta.url);
    const page = readFileSync(new URL('index.html', dist), 'utf8'); // it names the scripts that every page loads
    const scripts = readdirSync(dist).filter((f) => f.endsWith('.js') && page.includes(f));
    row('scripts of every page, compressed', Math.round(scripts.reduce((n, f) => n + gzipSync(readFileSync(new URL(f, dist)), { level: 9 }).length, 0) / 100) / 10, 'KB', 80, true);
    await (await open(b, 'warm', `/tasks/run${SIZES.split(',')[0]}`, '.line .what', 'words')).close();
    const [floor] = await several(b, [['floor', '/licenses.txt', 'pre', 'Copyright']]);
    row('a page of text: painted', floor.at, 'ms', '');
    row('a page of text: processor until then', floor.tasks, 'ms', '');
    await sizes(b);
    await trace(b);
    await tree(b);
    const line = (r) => `  ${r.what.padEnd(66)} ${String(r.figure).padStart(8)} ${r.unit.padEnd(6)} ${r.aim === '' ? '' : `aim ${r.aim}`}`;
    return `\n${rows.map(line).join('\n')}\n `;
  },
});
