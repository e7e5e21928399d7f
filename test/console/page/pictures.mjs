// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Every view looks as it did, in both themes: pictures of it are compared with those in PICTURES, pixel by pixel. Pictures are kept
// at a quarter of the size, so that the smoothing of letters does not count and a row that moved does. UPDATE=1 keeps new ones.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { BASE, assert, run, shown, signedIn } from './drive.mjs';
import { SHOTS, dark, eachLook, light } from './look.mjs';
import { views } from './where.mjs';

const { PICTURES, UPDATE } = process.env;
const levels = 20; // of 255, by which a pixel may differ
const pixels = 0.002; // of all, which may differ more

// still makes what no two runs have in common the same: times, durations, ids and digests, and what is drawn from these.
function still() {
  const same = [
    [/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32,}/g, '0123456789abcdef'], // first: a part of an id can look like a duration
    [/\b\d{4}-\d\d-\d\d\b/g, '2000-01-01'], [/\d\d:\d\d:\d\d(\.\d+)?/g, '00:00:00'], [/[+-]\d+:\d\d(:\d\d)?\.\d+/g, '+00:00.000'],
    [/\b\d+(\.\d+)? ?(ms|s|min|m|h|d|days?|hours?|minutes?|seconds?)\b( \d+ ?(s|min|m)\b)?/g, '1 s'],
    [/(resourceVersion|generation|seq): "?\d+"?/gi, '$1: 1'],
    [/\b\d+ (KiB|B|bytes)\b/g, '1 $1'],
  ];
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = all.nextNode(); n; n = all.nextNode()) {
    const text = same.reduce((t, [what, by]) => t.replace(what, by), n.data);
    if (text !== n.data) n.data = text;
  }
  for (const e of document.querySelectorAll('canvas, .minimap i, .span i, .waterfall i')) e.style.visibility = 'hidden';
  document.activeElement?.blur();
}

// compare runs in a page of its own: it makes a picture smaller and compares it with the one that was kept.
async function compare([png, kept, levels]) {
  const pixelsOf = async (data, width, height) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const canvas = new OffscreenCanvas(width ?? image.width, height ?? image.height);
    const c = canvas.getContext('2d', { willReadFrequently: true });
    c.imageSmoothingQuality = 'high';
    c.drawImage(image, 0, 0, canvas.width, canvas.height);
    return { canvas, data: c.getImageData(0, 0, canvas.width, canvas.height).data };
  };
  const { canvas, data } = await pixelsOf(png, 320, 200);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
  const small = btoa(String.fromCharCode(...bytes));
  if (!kept) return { small, differ: 1 };
  const before = (await pixelsOf(kept)).data;
  let differ = 0;
  for (let i = 0; i < data.length; i += 4) if ([0, 1, 2].some((k) => Math.abs(data[i + k] - before[i + k]) > levels)) differ++;
  return { small, differ: differ / (data.length / 4) };
}

await run({
  pictures: async (b) => {
    const { page, close } = await signedIn(b, { reducedMotion: 'reduce' });
    const lab = await b.newPage();
    const broken = [];
    for (const [view, [path, text, act]] of Object.entries(views)) {
      await page.goto(`${BASE}/console${path}`);
      await shown(page, path, text);
      await act?.(page);
      await eachLook(page, [light, dark], async (as) => {
        const file = `${PICTURES}/${view}-${as}.png`;
        const kept = existsSync(file) && !UPDATE ? readFileSync(file).toString('base64') : '';
        let found;
        let png;
        for (let left = 5; left > 0; left--) { // what arrives late changes the page once more
          await page.evaluate(still);
          png = await page.screenshot({ animations: 'disabled', caret: 'hide' });
          found = await lab.evaluate(compare, [png.toString('base64'), kept, levels]);
          if (found.differ <= pixels) break;
          await page.evaluate(() => new Promise((done) => setTimeout(() => requestAnimationFrame(done), 200)));
        }
        if (UPDATE) writeFileSync(file, Buffer.from(found.small, 'base64'));
        else if (found.differ > pixels) {
          writeFileSync(`${SHOTS}/differs-${view}-${as}.png`, png);
          broken.push(`${view}, ${as}: ${(found.differ * 100).toFixed(2)} % of the pixels differ${kept ? '' : ': there is no picture of it'}`);
        }
      });
    }
    await lab.close();
    await close();
    assert.ok(broken.length === 0, `${broken.join('\n')}\nLook at ${SHOTS}/differs-*.png. If they are right, run the test with UPDATE=1 and look at the pictures that changed. They were made by Chromium ${b.version()}.`);
    return `${2 * Object.keys(views).length} of Chromium ${b.version()}`;
  },
});
