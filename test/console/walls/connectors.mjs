// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// People link accounts at the provider that listens at PROVIDER, through the server at BASE. ANN and BOB are tokens of people, ROBOT is one
// of a ServiceAccount, and OFF is the address of a server without connectors, with its token ROBOT_OFF. CONTROL gives a consent and says
// where the browser is sent, CALLBACK are the reasons of a callback, and FOUND is a file that gets the completion tokens.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { started } from '../browser.mjs';
import { BASE, assert, opened, shown, signedIn } from '../page/drive.mjs';
import { SHOTS, dark, eachLook, light, phone, rules } from '../page/look.mjs';

const require = createRequire(new URL('../../../pkg/console/web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
const { PROVIDER, ANN, BOB, ROBOT, ROBOT_OFF, OFF, CONTROL, FOUND } = process.env;
const reasons = process.env.CALLBACK.split(',');

const host = 'https://accounts.provider.example';
const view = `${BASE}/console/settings/connectors`;
const browser = await started(chromium, [`--host-resolver-rules=MAP accounts.provider.example:443 ${PROVIDER}`]);
const options = { ignoreHTTPSErrors: true }; // the certificate of the provider is one of a test

// person opens the connectors as somebody. The page is watched until it is closed: everything that it asks for, says and keeps.
async function person(token) {
  const it = token ? await signedIn(browser, options, token) : await opened(browser, options);
  const { page } = it;
  const seen = [];
  const tokens = new Set();
  const watch = async (p) => {
    const session = await p.context().newCDPSession(p);
    await session.send('Network.enable');
    session.on('Network.requestWillBeSent', ({ request, redirectResponse, documentURL }) => {
      seen.push(['a request', request.url], ['the address at a request', documentURL], ['the header of a request', JSON.stringify(request.headers)]);
      if (redirectResponse) seen.push(['a redirect', redirectResponse.url]);
      if (/\/complete$/.test(request.url)) tokens.add(JSON.parse(request.postData).completion);
    });
    session.on('Network.requestWillBeSentExtraInfo', ({ headers }) => seen.push(['the header of a request', JSON.stringify(headers)]));
    p.on('console', (m) => seen.push(['the log of the page', m.text()]));
    // The addresses at which a script of the page asks for something.
    await p.addInitScript(() => {
      const { fetch } = window;
      window.fetch = (...all) => (console.log(`asks at ${location.href}`), fetch(...all));
    });
    return session;
  };
  const session = await watch(page);
  const typed = new Set(); // a browser remembers what somebody typed
  const visit = (to) => (typed.add(to), page.goto(to));
  // clean fails if a completion token can be found anywhere but in the request that ends the consent.
  const clean = async (...more) => {
    const all = [...tokens, ...more];
    assert.ok(all.length > 0 && all.every((t) => t.length > 40), `tokens: ${all}`);
    const { entries } = await session.send('Page.getNavigationHistory');
    for (const e of entries) seen.push(['the history', `${e.url} ${typed.has(e.userTypedURL) ? '' : e.userTypedURL} ${e.title}`]);
    seen.push(['what the page keeps', await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.referrer, history.state, navigation.entries().map((e) => e.url), document.documentElement.outerHTML]))]);
    for (const [where, text] of seen) for (const t of all) assert.ok(!text.includes(t), `${where} has a completion token: ${text}`);
    assert.ok(seen.some(([, text]) => text.startsWith('asks at ')) && entries.length > 1);
    for (const t of all) appendFileSync(FOUND, `${t}\n`);
  };
  // No page complains of anything but answers that a part expects.
  const close = async () => {
    await it.close();
    assert.deepEqual(it.complaints.filter((c) => !/status of 40[1349]|status of 501|^asked https:\/\/accounts\.provider\.example\//.test(c)), []);
  };
  if (token) await page.goto(view);
  return { ...it, close, clean, visit, tokens };
}

const card = (page) => page.getByRole('article', { name: 'Code host' });
const press = (page, name) => page.getByRole('button', { name }).click();
const says = (page, text) => shown(page, page.url(), text);

// told waits until the card of the connector shows all of some texts.
async function told(page, ...all) {
  for (const text of all) {
    try {
      await page.waitForFunction((t) => document.querySelector('article[aria-label="Code host"]')?.innerText.includes(t), text);
    } catch {
      throw new Error(`no ${text} in ${await page.evaluate(() => document.body.innerText)}`);
    }
  }
}

// decides presses a button of the provider's page, and waits for the way back.
async function decides(page, button) {
  await page.waitForURL(`${host}/authorize?**`);
  await press(page, button);
  await page.waitForURL((u) => u.href.startsWith(view));
}

// ask sends a request of the REST API as the page does.
const ask = (page, method, path, body) => page.evaluate(async ([method, path, body]) => {
  const r = await fetch(path, { method, headers: { 'x-platform-console': localStorage.getItem('platform.console.key'), 'content-type': 'application/json' }, body });
  return { status: r.status, body: JSON.parse((await r.text()) || 'null') };
}, [method, path, body]);

// begun begins a consent and returns the provider's address.
async function begun(page) {
  const { status, body } = await ask(page, 'POST', '/api/v1/connections', '{"provider":"provider"}');
  assert.equal(status, 201, JSON.stringify(body));
  return body.authorizeURL;
}

// comeBack gives the consent, and returns where the browser is sent.
async function comeBack(authorizeURL) {
  const r = await fetch(`${CONTROL}?${new URLSearchParams({ authorizeURL })}`);
  const to = await r.text();
  assert.ok(r.status === 200 && to.startsWith(`${BASE}/settings/connectors?`) && /[?&]status=pending#completion=/.test(to), to);
  return to;
}

const tokenOf = (address) => address.split('#completion=')[1];
const mine = async (page) => (await ask(page, 'GET', '/api/v1/connections')).body.items;

const parts = {
  async 'a person links an account'() {
    const { page, clean, close, visit, tokens } = await person(ANN);
    await told(page, 'Not connected', 'Connector\nready', 'Scopes to read\nread', 'More scopes to write\nwrite', 'Tools that read\nfind', 'Tools that write\nnone');
    await press(page, 'Connect, read only');
    await decides(page, 'Consent');
    await says(page, 'Your account is linked.');
    await told(page, 'Ready', 'Your account is for\nread only', 'Granted\nread', 'Linked\n20', 'Access ends, unless it is renewed\n20');
    await page.waitForURL(view); // nothing of the consent is left in the address
    assert.equal(tokens.size, 1);
    await clean();
    // The address of the page is of no use again.
    await visit(`${BASE}/settings/connectors?status=pending&connection=${(await mine(page))[0].name}&namespace=team#completion=${[...tokens][0]}`);
    await says(page, 'the completion token was used');
    await told(page, 'Ready');
    await clean();
    await close();
  },

  async 'what the account may be used for'() {
    const { page, clean, close } = await person(ANN);
    await told(page, 'Ready');
    await press(page, 'Change to read and write');
    await decides(page, 'Deny');
    await says(page, 'Nothing was linked. You did not agree at the provider.');
    await told(page, 'Waiting for consent', 'The mode needs scopes that were not granted', 'read and write');
    await press(page, 'Change to read only'); // needs no consent
    await told(page, 'Ready', 'read only');
    assert.equal(page.url(), view);
    await press(page, 'Change to read and write');
    await decides(page, 'Consent');
    await told(page, 'Ready', 'Your account is for\nread and write', 'Granted\nread, write');
    await press(page, 'Connect again');
    await decides(page, 'Consent');
    await says(page, 'Your account is linked.');
    await press(page, 'Disconnect …');
    await says(page, 'Disconnect your account at Code host?');
    await page.keyboard.press('Escape');
    assert.equal((await mine(page)).length, 1);
    await press(page, 'Disconnect …');
    await page.keyboard.press('Enter');
    await told(page, 'Not connected', 'Connect, read only');
    assert.deepEqual(await mine(page), []);
    await clean();
    await close();
  },

  async 'a consent that another person began'() {
    const ann = await person(ANN);
    const bob = await person(BOB);
    const hers = await comeBack(await begun(ann.page));
    // Bob has the address to which Ann's browser would be sent, or was sent there with Ann's consent.
    await bob.visit(hers);
    await says(bob.page, 'Nothing was linked: the consent was begun by another person');
    await bob.clean(tokenOf(hers));
    assert.deepEqual(await mine(bob.page), []);
    assert.equal((await mine(ann.page))[0].state, 'Pending');
    // Ann is sent to the provider by Bob, and consents there: it would be her account on his connection.
    const his = await begun(bob.page);
    await ann.page.goto(his);
    await decides(ann.page, 'Consent');
    await says(ann.page, 'Nothing was linked: the consent was begun by another person');
    await ann.clean();
    const [c] = await mine(bob.page);
    assert.ok(c.state === 'Pending' && !c.linkedAt, JSON.stringify(c));
    assert.ok(!(await mine(ann.page))[0].linkedAt);
    // What Bob tried takes nothing from Ann.
    await ann.visit(hers);
    await says(ann.page, 'Your account is linked.');
    await told(ann.page, 'Ready');
    await ann.clean(tokenOf(hers));
    await ann.close();
    await bob.close();
  },

  async 'somebody who is not signed in'() {
    const ann = await person(ANN);
    const { page, clean, close, visit } = await person();
    const address = await comeBack(await begun(ann.page));
    await visit(address);
    await says(page, 'You are not signed in, so your account is not linked yet.');
    const [other] = await Promise.all([page.waitForEvent('popup'), page.getByRole('link', { name: 'Sign in in another tab' }).click()]);
    await other.fill('#token', ANN);
    await other.click('button[type=submit]');
    await says(page, 'Your account is linked.'); // in the first tab
    await told(page, 'Ready');
    await other.waitForURL(view);
    await clean(tokenOf(address));
    await close();
    // A page that was loaded again has nothing to link.
    const late = await person();
    const lost = await comeBack(await begun(ann.page));
    await late.visit(lost);
    await says(late.page, 'You are not signed in');
    await late.page.reload();
    await late.page.fill('#token', ANN);
    await late.page.click('button[type=submit]');
    await says(late.page, 'this page does not have the answer of the provider any more');
    await late.page.waitForURL(view);
    await late.clean(tokenOf(lost));
    await late.close();
    await ann.close();
  },

  async 'why nothing was linked'() {
    const { page, close } = await person(ANN);
    const sentences = new Set();
    const unknown = 'a reason that this page does not know';
    const of = async (reason) => {
      await page.goto(`${BASE}/settings/connectors?status=error&reason=${encodeURIComponent(reason)}`);
      const told = page.locator('main [role=alert]', { hasText: 'Nothing was linked.' });
      await told.waitFor();
      await page.waitForURL(view);
      return told.innerText();
    };
    for (const r of reasons) {
      const text = await of(r);
      assert.ok(!text.includes(unknown), `${r}: ${text}`);
      assert.match(text, /\. .*(onnect again|do nothing|nothing to do)/, r); // what happened, and what to do
      sentences.add(text);
    }
    assert.ok(sentences.size === reasons.length && sentences.size > 10, `${reasons}`);
    for (const r of ['Call this number', 'toString', '']) {
      const text = await of(r);
      assert.ok(text.includes(unknown) && !(r && text.includes(r)), `${r}: ${text}`);
    }
    await close();
  },

  async 'an address that is not https'() {
    const { page, close } = await person(BOB);
    await told(page, 'Waiting for consent', 'The person has not given consent yet.');
    for (const address of ['http://accounts.provider.example/authorize', 'javascript:document.title="pwned"', 'https://', '//accounts.provider.example']) {
      await page.route('**/api/v1/connections/*/authorize', (r) => r.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify({ authorizeURL: address }) }));
      await press(page, 'Connect again');
      await card(page).getByRole('alert').filter({ hasText: 'not https' }).waitFor();
      assert.ok(page.url() === view && (await page.title()) === 'Connectors · platform', address);
      await page.unroute('**/api/v1/connections/*/authorize');
    }
    await close();
  },

  async 'no person, and no connectors'() {
    const robot = await person(ROBOT);
    await says(robot.page, 'Accounts belong to people, and you are signed in as system:serviceaccount:team:robot');
    assert.equal(await robot.page.getByRole('button', { name: /onnect/ }).count(), 0);
    await robot.close();
    const { page, close } = await opened(browser, { base: OFF });
    await page.goto(`${OFF}/console/login?next=/console/settings/connectors`);
    await page.fill('#token', ROBOT_OFF);
    await page.click('button[type=submit]');
    await says(page, 'This server has no connectors');
    await close();
  },

  async 'how it looks'() {
    const { page, close } = await person(ANN);
    await told(page, 'Ready');
    await page.getByRole('link', { name: 'Connectors' }).and(page.locator('[aria-current=page]')).waitFor();
    await page.keyboard.press('j');
    await page.waitForFunction(() => document.activeElement.ariaLabel === 'Code host');
    const broken = [];
    const look = (name) => eachLook(page, [light, dark, ['phone', 'light', phone]], async (as) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), 0, `${name}, ${as}: wider than the window`);
      await page.screenshot({ path: `${SHOTS}/${name}-${as}.png` });
      broken.push(...(await rules(page)).map((r) => `${name}, ${as}: ${r}`));
    });
    await look('connectors');
    await press(page, 'Disconnect …');
    await says(page, 'Disconnect your account');
    await look('connectors-disconnecting');
    await page.goto(`${BASE}/settings/connectors?status=error&reason=invalid_state`);
    await says(page, 'Nothing was linked.');
    await told(page, 'Ready');
    await look('connectors-error');
    assert.deepEqual(broken, []);
    await close();
  },
};

try {
  for (const [name, part] of Object.entries(parts)) {
    await part();
    console.log(`ok: ${name}`);
  }
} catch (e) {
  console.log(`FAILED: ${e.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
