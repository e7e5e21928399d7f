// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A page in headless Chromium calls the APIs at BASE from its own origin, with TOKEN. ORIGIN is the port of the one origin
// that the server allows.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { started } from '../../console/browser.mjs';

const { BASE, TOKEN, ORIGIN, REST } = process.env;
const page = createServer((_, w) => w.setHeader('content-type', 'text/html').end('<!doctype html><title>page</title>'));
await new Promise((ready) => page.listen(Number(ORIGIN), '127.0.0.1', ready));
const browser = await started(chromium);

// call runs in the page: one request, and what a script can see of the answer.
async function call({ url, headers, body }) {
  try {
    const r = await fetch(url, { method: body ? 'POST' : 'GET', headers, body });
    return { status: r.status, requestId: r.headers.get('x-request-id'), text: await r.text() };
  } catch (e) {
    return { error: `${e}` };
  }
}

try {
  const allowed = await browser.newPage();
  await allowed.goto(`http://127.0.0.1:${ORIGIN}/`);
  const other = await browser.newPage();
  await other.goto(`http://localhost:${ORIGIN}/`); // another origin
  const headers = { 'content-type': 'application/json', 'x-platform-tools': 'disabled', 'x-stainless-lang': 'js' };
  const messages = [{ role: 'user', content: 'hello' }];
  const calls = {
    'a chat completion': { url: `${BASE}/openai/v1/chat/completions`, headers: { ...headers, authorization: `Bearer ${TOKEN}` }, body: JSON.stringify({ model: 'openai/m', messages }) },
    'a stream': { url: `${BASE}/openai/v1/chat/completions`, headers: { ...headers, authorization: `Bearer ${TOKEN}` }, body: JSON.stringify({ model: 'openai/m', messages, stream: true }) },
    'a message': {
      url: `${BASE}/anthropic/v1/messages`,
      headers: { ...headers, 'x-api-key': TOKEN, 'anthropic-version': '2023-06-01', 'anthropic-dangerous-direct-browser-access': 'true' },
      body: JSON.stringify({ model: 'claude/m', max_tokens: 100, messages }),
    },
  };
  if (REST) calls['a chat'] = { url: `${REST}/api/v1/chat`, body: JSON.stringify({ message: 'hello', provider: 'openai' }), headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${TOKEN}` } };
  for (const [name, request] of Object.entries(calls)) {
    const got = await allowed.evaluate(call, request);
    assert.equal(got.status, 200, `${name}: ${JSON.stringify(got)}`);
    assert.match(got.text, /said/, name);
    assert.ok(got.requestId, `${name}: the page may not read the request's id`);
    assert.match((await other.evaluate(call, request)).error ?? '', /Failed to fetch/, `${name}, from another origin`);
    console.log(`ok: ${name}`);
  }
  // An error can be read, too, and cookies are not sent.
  const refused = await allowed.evaluate(call, { ...calls['a message'], headers: { ...calls['a message'].headers, 'x-api-key': 'x' } });
  assert.equal(refused.status, 401);
  assert.match(refused.text, /authentication_error/);
  console.log('ok: an error');
} catch (e) {
  console.log(`FAILED: ${e.stack}`);
  process.exitCode = 1;
} finally {
  await browser.close();
  page.close();
}
