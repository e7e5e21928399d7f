// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The tool runner of Anthropic's client, unmodified, which keeps its conversation in a thread of the vendor unless the server says
// that it cannot, against the server at BASE with the token TOKEN. The Providers "openai" and "claude" are served by a scripted model.
// Each model is asked with the tools of the client and, where that is set, with those of the server.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';

const { BASE, TOKEN } = process.env;

const fetched = [];
const client = new Anthropic({
  baseURL: `${BASE}/anthropic`, apiKey: TOKEN, maxRetries: 0,
  fetch: async (url, init) => {
    const response = await fetch(url, init);
    const { thread, messages } = JSON.parse(init.body);
    const error = response.ok ? undefined : (await response.clone().json()).error;
    fetched.push({ thread, messages: messages.length, status: response.status, code: error?.details?.error_code });
    return response;
  },
});

for (const model of ['claude/m', 'openai/m']) {
  for (const stream of [false, true]) {
    fetched.length = 0;
    const weather = {
      name: 'weather', description: 'the weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } },
      parse: (input) => input, run: ({ city }) => `sunny in ${city}`,
    };
    const runner = client.beta.messages.toolRunner({ model, max_tokens: 100, stream, messages: [{ role: 'user', content: 'weather?' }], tools: [weather] });
    const last = await runner.runUntilDone();
    assert.match(last.content.find((b) => b.type === 'text').text, /sunny in/);
    // The first request is one of a thread, and is refused; what follows is the whole conversation.
    assert.deepEqual(fetched, [
      { thread: { type: 'create' }, messages: 1, status: 400, code: 'thread_unsupported_request' },
      { thread: undefined, messages: 1, status: 200, code: undefined },
      { thread: undefined, messages: 3, status: 200, code: undefined },
    ]);
    console.log(`ok: ${model}, stream ${stream}`);
  }
}

// With the tools of the server, too.
fetched.length = 0;
const runner = client.withOptions({ defaultHeaders: { 'X-Platform-Tools': 'enabled' } }).beta.messages.toolRunner({ model: 'claude/m', max_tokens: 100, messages: [{ role: 'user', content: 'finished?' }], tools: [] });
assert.equal((await runner.runUntilDone()).content[0].text, 'All is done.');
assert.deepEqual(fetched.map((f) => f.code), ['thread_unsupported_request', undefined]);
console.log('ok: with the tools of the server');
