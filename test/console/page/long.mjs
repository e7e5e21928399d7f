// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A run of COUNT events.
import { request } from 'node:http';
import { BASE, MORE, TOKEN, assert, nodes, run, signedIn } from './drive.mjs';

const count = Number(process.env.COUNT);
const more = async (n) => assert.ok((await fetch(`${MORE}?task=long&n=${n}`)).ok);

// shows waits for a row with a text.
async function shows(page, text) {
  try {
    await page.locator('.line', { hasText: text }).first().waitFor();
  } catch {
    const state = await page.evaluate(() => {
      const rows = document.querySelector('.rows');
      return [rows?.scrollTop, rows?.clientHeight, rows?.scrollHeight, document.querySelector('.bar [role=status]')?.innerText, rows?.innerText.slice(-300)].join(' | ');
    });
    throw new Error(`there is no row with ${text}: ${state}`);
  }
}

async function measured(browser, path) {
  const it = await signedIn(browser);
  await it.page.goto('about:blank');
  const session = await it.page.context().newCDPSession(it.page);
  await session.send('Network.enable');
  let requests = 0;
  let bytes = 0;
  session.on('Network.requestWillBeSent', (e) => e.request.url.includes('/approvals?') || requests++); // the header asks for these a second later
  session.on('Network.dataReceived', (e) => (bytes += e.encodedDataLength));
  await it.page.goto(`${BASE}/console${path}`);
  return { ...it, spent: () => ({ requests, bytes }) };
}

// end ends the session of a page at the server, as a restart does: the browser keeps its cookie.
async function end(page) {
  const cookie = (await page.context().cookies()).map((c) => `${c.name}=${c.value}`).join('; ');
  const key = await page.evaluate(() => localStorage.getItem('platform.console.key'));
  const headers = { cookie, 'x-platform-console': key, 'sec-fetch-site': 'same-origin', origin: BASE };
  const status = await new Promise((resolve, reject) => request(`${BASE}/console/session`, { method: 'DELETE', headers }, (r) => resolve(r.resume().statusCode)).on('error', reject).end());
  assert.equal(status, 200);
}

await run({
  'a server that fails for a while': async (b) => {
    const { page, close } = await measured(b, '/tasks/long');
    await shows(page, `words ${count - 2}`);
    let seen = false;
    const busy = (route) => (seen ? route.continue() : route.fulfill({ status: 503, contentType: 'application/json', body: '{"message":"wait a little"}' }));
    await page.route('**/tasks/long/events?after=*', busy);
    await page.evaluate(() => (document.querySelector('.rows').scrollTop = document.querySelector('.rows').scrollHeight / 2));
    await page.getByText('wait a little').waitFor();
    seen = true;
    await shows(page, `words ${count / 2}`); // without a move
    await close();
  },
  'open at the end': async (b) => {
    const { page, complaints, spent, close } = await measured(b, '/tasks/long');
    await shows(page, `words ${count - 2}`);
    const { requests, bytes } = spent();
    const n = await nodes(page);
    assert.ok(requests <= 11, `${requests} requests`); // 10, and the style sheet's or the page's revalidation
    assert.ok(bytes <= 300_000, `${bytes} bytes`);
    assert.ok(n <= 1500, `${n} nodes`);
    // From one end to the other; what is there is not counted up.
    await page.evaluate(async () => {
      const rows = document.querySelector('.rows');
      for (let i = 100; i >= 0; i--) {
        rows.scrollTop = (rows.scrollHeight * i) / 100;
        await new Promise((r) => requestAnimationFrame(r));
      }
    });
    await shows(page, 'words 0');
    assert.ok((await nodes(page)) <= 1500);
    await close();
    assert.deepEqual(complaints, []);
    return `${requests} requests, ${bytes} bytes, ${n} nodes`;
  },
  'open at one event': async (b) => {
    const { page, spent, close } = await measured(b, `/tasks/long#seq=${count / 2 + 1}`);
    await page.locator('.line[aria-selected=true]', { hasText: `words ${count / 2}` }).waitFor();
    await page.getByText(`Part ${count / 2}`).waitFor();
    const { requests } = spent();
    await close();
    return `${requests} requests`;
  },
  'what comes next is read before it is seen': async (b) => {
    const { page, close } = await measured(b, '/tasks/long#seq=5001');
    await page.locator('.line[aria-selected=true]', { hasText: 'words 5000' }).waitFor();
    const asked = page.waitForRequest((r) => {
      const q = new URL(r.url()).searchParams; // the stream's begins at the end of the run
      return Number(q.get('after')) < 5200 && Number(q.get('after')) + Number(q.get('limit')) > 5100;
    });
    const last = await page.evaluate(async () => {
      for (let i = 0; i < 40; i++) {
        document.querySelector('.rows').scrollTop += 28;
        await new Promise(requestAnimationFrame);
      }
      return Math.max(...[...document.querySelectorAll('.line .seq')].map((e) => Number(e.textContent)));
    });
    await asked;
    assert.ok(last < 5100, `row ${last} is in view`);
    await close();
  },
  'live at the end': async (b) => {
    const { page, close } = await measured(b, '/tasks/long');
    await shows(page, `words ${count - 2}`);
    await page.getByText(', live').waitFor();
    await more(300);
    await shows(page, 'words 1000298');
    assert.ok((await nodes(page)) <= 1500);
    await close();
  },
  'live elsewhere': async (b) => {
    const { page, close } = await measured(b, '/tasks/long#seq=1001');
    await page.locator('.line[aria-selected=true]', { hasText: 'words 1000' }).waitFor();
    await page.getByText(', live').waitFor();
    const where = () => page.evaluate(() => [document.querySelector('.rows').scrollTop, document.querySelector('.line[aria-selected=true]').getBoundingClientRect().top]);
    const before = await where();
    const total = Number((await page.locator('.bar [role=status]').innerText()).replace(/\D/g, '')) + 300;
    await more(300);
    await page.getByText(`${total.toLocaleString('en')} events, live`).waitFor();
    assert.deepEqual(await where(), before);
    await close();
  },
  'a long trace in parts': async (b) => {
    const { page, complaints, close } = await signedIn(b);
    await page.goto(`${BASE}/console/tasks/spans?tab=trace`);
    await page.getByText(/^Events 1 to 20,0\d\d of 20,1\d\d$/).waitFor();
    await page.locator('canvas[aria-label^="10000 spans"]').waitFor();
    await page.getByRole('link', { name: 'Next part' }).click();
    await page.locator('canvas[aria-label^="50 spans"]').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Next part' }).count(), 0);
    await page.reload(); // the address holds the part
    await page.locator('canvas[aria-label^="50 spans"]').waitFor();
    await page.getByRole('link', { name: 'First part' }).click();
    await page.getByText(/^Events 1 to/).waitFor();
    await close();
    assert.deepEqual(complaints, []);
  },
  'the session ends': async (b) => {
    const { page, close } = await measured(b, '/tasks/long');
    await page.getByText(', live').waitFor();
    await end(page);
    await page.getByText('Your session has ended').waitFor();
    assert.ok((await page.locator('.line .what').count()) > 0, 'what was shown is gone');
    const other = await page.context().newPage();
    await other.goto(`${BASE}/console/login`);
    await other.fill('#token', TOKEN);
    await other.click('button[type=submit]');
    await other.waitForSelector('header.top form');
    await page.getByText('Your session has ended').waitFor({ state: 'hidden' });
    await page.getByText(', live').waitFor();
    await more(10);
    await shows(page, 'words 1000608');
    await close();
  },
});
