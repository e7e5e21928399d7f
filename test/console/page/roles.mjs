// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A walk through the views as each role of KEYS. Every button is pressed. What it would change is caught on its way to the
// server, and compared with what the server says the role may do. What the page reads by itself must not be refused, or the
// view must say that it was.
import { assert, entered, run, signedIn } from './drive.mjs';

const { APPROVAL, NAMESPACE } = process.env;
// By role: the token to sign in with, or the link of platform console.
const keys = JSON.parse(process.env.KEYS);
const paths = [
  '/', '/tasks', '/new', '/tasks/nightly', '/tasks/plain#seq=5', '/tasks/plain?tab=transcript', '/tasks/plain?tab=trace', '/tasks/plain?tab=result', '/tasks/plain?tab=artifacts', '/tasks/plain?tab=log',
  '/tasks/plain?tab=yaml', '/tree/plain', '/approvals', `/approvals/${APPROVAL}`, '/sessions', '/sessions/talk', '/chat', '/usage', '/usage?by=model', '/catalogue', '/catalogue?kind=providers',
  '/catalogue/agents/helper', '/compare?a=plain&b=long', '/memory', '/memory?tab=memories', '/monitors', '/monitors/shop', '/monitors/shop?tab=commands',
  '/monitors/shop/shop.pr-7', '/monitors/shop/shop.issue-9', '/gateways', '/gateways/chat', '/gateways/chat?tab=events', '/gateways/chat?tab=deliveries', '/gateways/chat?tab=bindings',
];
const refused = /not permit|not permitted|forbidden|cannot|may not/i;

// write names what a request changes, as a rule does: such as "create approvals/decision".
function write(request) {
  const [, , , , , resource, , sub] = new URL(request.url()).pathname.split('/').slice(1);
  const verb = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }[request.method()];
  return `${verb} ${sub ? `${resource}/${sub}` : resource}`;
}

async function walk(browser, role) {
  const { page, complaints, close } = await (keys[role].startsWith('http') ? entered(browser, keys[role]) : signedIn(browser, {}, keys[role]));
  const writes = new Set();
  const forbidden = [];
  const open = new Set();
  let lost = 0; // answers that say nothing about rights
  const quiet = (r) => /watch=true|follow=true|\/stream|\/turn/.test(r.url()); // goes on
  page.on('request', (r) => quiet(r) || open.add(r));
  page.on('requestfinished', (r) => open.delete(r));
  page.on('requestfailed', (r) => (open.delete(r), /ERR_ABORTED/.test(r.failure()?.errorText ?? '') || lost++));
  page.on('response', (r) => /^50[34]$/.test(r.status()) && lost++);
  page.on('response', (r) => r.status() === 403 && forbidden.push(`${r.request().method()} ${new URL(r.url()).pathname}`));
  await page.route('**/apis/core.platform.ai/**', (route) => {
    const r = route.request();
    if (r.method() === 'GET' || /\/(usagereports|taskqueries|gatewayrecordqueries)$/.test(r.url())) return route.continue();
    writes.add(write(r));
    return route.fulfill({ status: 409, contentType: 'application/json', body: '{"message":"caught"}' });
  });
  const settled = async () => {
    const until = Date.now() + 120_000;
    for (let calm = 0; calm < 3; ) {
      assert.ok(Date.now() < until, `${role}: ${page.url()} does not come to rest, with ${open.size} requests`);
      await page.evaluate(() => new Promise((r) => requestAnimationFrame(() => setTimeout(r, 40))));
      const busy = await page.evaluate(() => /Loading |Finding out/.test(document.querySelector('main').innerText));
      calm = open.size > 0 || busy ? 0 : calm + 1;
    }
  };
  const to = (path) => page.evaluate((p) => (history.pushState(null, '', p), dispatchEvent(new PopStateEvent('popstate'))), `/console${path}`);
  // show shows a view, again if a read of it was lost on a busy machine: it has no buttons then.
  const show = async (path) => {
    for (const until = Date.now() + 120_000; ; ) {
      lost = forbidden.length = 0;
      await to(path);
      await settled();
      if (lost === 0) return;
      assert.ok(Date.now() < until, `${role}: ${path} loses its reads`);
      await to('/no/such/page'); // the view is made anew
      await page.waitForTimeout(500);
    }
  };
  const silent = [];
  for (const path of paths) {
    await show(path);
    const text = await page.evaluate(() => document.querySelector('main').innerText);
    if (forbidden.length > 0 && !refused.test(text)) silent.push(`${path}: ${forbidden.join(', ')} without a word: ${text.slice(0, 200)}`);
    const pressed = new Set();
    for (;;) {
      for (const field of await page.locator('main textarea:visible, main form:not([role=search]) input:visible:not([type])').all()) if (!(await field.inputValue())) await field.fill('x');
      const buttons = await page.locator('main button:visible:enabled, main a.button:visible').all();
      let next;
      for (const b of buttons) {
        const name = (await b.innerText()).trim();
        if (!pressed.has(name) && !/^(Cancel Esc|Close|×|Show more|Load more|Download)/.test(name)) {
          pressed.add(name);
          next = b;
          break;
        }
      }
      if (!next) break;
      await next.click();
      await settled();
      if (!page.url().includes(path.split(/[?#]/)[0])) await show(path); // a link was followed
    }
  }
  const may = (what) => page.evaluate(async ([verb, resource, namespace]) => {
    const [name, subresource] = resource.split('/');
    const r = await fetch('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-platform-console': localStorage.getItem('platform.console.key') },
      body: JSON.stringify({ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec: { resourceAttributes: { namespace, verb, group: 'core.platform.ai', resource: name, subresource } } }),
    });
    return (await r.json()).status.allowed;
  }, [...what.split(' '), NAMESPACE]);
  return { role, writes, may, silent, complaints, close };
}

await run({
  'roles': async (b) => {
    const walks = [];
    const left = Object.keys(keys);
    const next = async () => {
      for (let role; (role = left.shift()); ) walks.push(await walk(b, role));
    };
    await Promise.all([next(), next(), next()]); // more pages at a time would wait for one another, and for a busy server
    const all = [...new Set(walks.flatMap((w) => [...w.writes]))].sort();
    assert.ok(all.length >= 5, `all roles together were offered ${all}`);
    assert.deepEqual(walks.flatMap((w) => w.silent.map((s) => `${w.role}: ${s}`)), []);
    for (const { role, writes, may, complaints, close } of walks) {
      const allowed = [];
      for (const what of all) if (await may(what)) allowed.push(what);
      assert.deepEqual([...writes].sort(), allowed, `what ${role} is offered, and what it may do`);
      // What was lost on a busy machine says nothing about rights: what the page then lacks fails above.
      assert.deepEqual(complaints.filter((c) => !/status of (403|404|409|503|504)|net::ERR_(SOCKET_NOT_CONNECTED|CONNECTION_|EMPTY_RESPONSE|HTTP2_|INCOMPLETE_)/.test(c)), [], role);
      await close();
    }
    return walks.map(({ role, writes }) => `\n  ${role}: ${[...writes].sort().join(', ') || 'nothing'}`).join('');
  },
});
