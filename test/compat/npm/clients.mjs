// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The vendors' own clients, unmodified, and the AI SDK with both of its adapters, against the server at BASE with the token
// TOKEN. The Providers "openai" and "claude" are served by a scripted model; see turns in sdk_test.go. Exits with 1 and says
// what differed if an answer is not the expected one.
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';

const { BASE, TOKEN } = process.env;
const schema = { type: 'object', properties: { city: { type: 'string' } } };
// The clients bring tools of their own, so those of the server are switched off.
const defaultHeaders = { 'X-Platform-Tools': 'disabled' };
const weather = (argument) => `sunny in ${argument}`;

async function openai(model) {
  const client = new OpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0, defaultHeaders });
  const tools = [{ type: 'function', function: { name: 'weather', parameters: schema } }];
  const messages = [{ role: 'user', content: 'weather?' }];
  const first = await client.chat.completions.create({ model, messages, tools });
  const message = first.choices[0].message;
  assert.equal(message.content, 'I look.');
  assert.deepEqual(message.tool_calls.map((c) => JSON.parse(c.function.arguments).city), ['Bonn', 'Köln']);
  assert.equal(first.usage.total_tokens, 120);
  messages.push({ role: 'assistant', content: message.content, tool_calls: message.tool_calls });
  for (const c of message.tool_calls) messages.push({ role: 'tool', tool_call_id: c.id, content: weather(c.function.arguments) });
  const stream = client.chat.completions.stream({ model, messages, tools, stream_options: { include_usage: true } });
  const last = await stream.finalChatCompletion();
  assert.match(last.choices[0].message.content, /sunny in/);
  assert.equal(last.usage.completion_tokens, 10);
  await assert.rejects(client.chat.completions.create({ model, messages: [{ role: 'user', content: 'fail' }] }), (e) => e.status >= 500 && /overloaded/.test(e.message));
  await assert.rejects(client.withOptions({ apiKey: 'x' }).chat.completions.create({ model, messages }), OpenAI.AuthenticationError);
  const models = await client.models.list();
  assert.equal(models.data.length, 3);
}

// Responses have no store here, and the client leaves it to the default.
async function responses(model) {
  const client = new OpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0, defaultHeaders });
  const tools = [{ type: 'function', name: 'weather', parameters: schema, strict: false }];
  const request = { model, tools, input: [{ role: 'user', content: 'weather?' }] };
  const first = await client.responses.create(request);
  assert.equal(first.output_text, 'I look.');
  const calls = first.output.filter((o) => o.type === 'function_call');
  assert.deepEqual(calls.map((c) => JSON.parse(c.arguments).city), ['Bonn', 'Köln']);
  assert.equal(first.usage.total_tokens, 120);
  assert.equal(first.usage.input_tokens_details.cached_tokens, 60);
  request.input.push({ role: 'assistant', content: first.output_text });
  for (const { call_id, name, arguments: a } of calls) request.input.push({ type: 'function_call', call_id, name, arguments: a });
  for (const c of calls) request.input.push({ type: 'function_call_output', call_id: c.call_id, output: weather(c.arguments) });
  let text = '';
  const stream = client.responses.stream(request).on('response.output_text.delta', (e) => { text += e.delta; });
  const last = await stream.finalResponse();
  assert.match(last.output_text, /sunny in/);
  assert.equal(text, last.output_text);
  assert.equal(last.usage.output_tokens, 10);
  for (const wrong of [{ ...request, store: true }, { ...request, previous_response_id: 'x' }]) {
    await assert.rejects(client.responses.create(wrong), OpenAI.BadRequestError);
  }
  await assert.rejects(client.responses.create({ ...request, input: 'fail', tools: [] }), (e) => e.status >= 500 && /overloaded/.test(e.message));
}

async function anthropic(model) {
  const client = new Anthropic({ baseURL: `${BASE}/anthropic`, apiKey: TOKEN, maxRetries: 0, defaultHeaders });
  const request = { model, max_tokens: 100, tools: [{ name: 'weather', input_schema: schema }], messages: [{ role: 'user', content: 'weather?' }] };
  const first = await client.messages.create(request);
  assert.equal(first.stop_reason, 'tool_use');
  assert.equal(first.content[0].text, 'I look.');
  assert.deepEqual(first.content.slice(1).map((c) => c.input.city), ['Bonn', 'Köln']);
  request.messages.push({ role: 'assistant', content: first.content.map(({ type, text, id, name, input }) => (type === 'text' ? { type, text } : { type, id, name, input })) });
  request.messages.push({ role: 'user', content: first.content.slice(1).map((c) => ({ type: 'tool_result', tool_use_id: c.id, content: weather(c.input.city) })) });
  const last = await client.messages.stream(request).finalMessage();
  assert.match(last.content[0].text, /sunny in/);
  assert.equal(last.usage.output_tokens, 10);
  const failing = { ...request, messages: [{ role: 'user', content: 'fail' }] };
  await assert.rejects(client.messages.create(failing), (e) => e.status >= 500 && /overloaded/.test(e.message));
  await assert.rejects(client.withOptions({ apiKey: 'x' }).messages.create(request), Anthropic.AuthenticationError);
  const models = await client.models.list();
  assert.equal(models.data.length, 3);
}

// Tokens are counted by the vendor, if it can, and estimated otherwise.
async function counting() {
  const client = new Anthropic({ baseURL: `${BASE}/anthropic`, apiKey: TOKEN, maxRetries: 0, defaultHeaders });
  const request = { model: 'claude/m', tools: [{ name: 'weather', input_schema: schema }], messages: [{ role: 'user', content: 'weather?' }] };
  const short = await client.messages.countTokens(request);
  const long = await client.messages.countTokens({ ...request, system: 'Be brief. '.repeat(100) });
  assert.ok(short.input_tokens > 0 && long.input_tokens > short.input_tokens, JSON.stringify([short, long]));
  const { data, response } = await client.messages.countTokens({ ...request, model: 'openai/m' }).withResponse();
  assert.ok(data.input_tokens > 0 && response.headers.get('x-platform-estimated') === 'true', JSON.stringify(data));
  await assert.rejects(client.withOptions({ apiKey: 'x' }).messages.countTokens(request), Anthropic.AuthenticationError);
}

async function adapter(model, providerOptions) {
  const tools = { weather: tool({ inputSchema: jsonSchema(schema), execute: async ({ city }) => weather(city) }) };
  const run = { model, providerOptions, tools, stopWhen: stepCountIs(3), maxRetries: 0, prompt: 'weather?' };
  const whole = await generateText(run);
  assert.match(whole.text, /sunny in/);
  assert.equal(whole.steps.length, 2);
  const stream = streamText(run);
  assert.match((await stream.steps).at(-1).text, /sunny in/);
  assert.equal((await stream.totalUsage).outputTokens, 30);
}

// Without the header, the server's tools are on. The mark of the goal is not part of the answer.
async function serverTools(protocol) {
  const messages = [{ role: 'user', content: 'finished?' }];
  if (protocol === 'responses') { // whose clients have to ask for them
    const client = new OpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0, defaultHeaders: { 'X-Platform-Tools': 'enabled' } });
    for (const model of ['openai/m', 'claude/m']) {
      const request = { model, store: false, input: messages };
      const { data, response } = await client.responses.create(request).withResponse();
      assert.equal(data.output_text, 'All is done.');
      assert.equal(response.headers.get('x-platform-tools'), 'enabled');
      assert.equal((await client.responses.stream(request).finalResponse()).output_text, 'All is done.');
    }
    return;
  }
  if (protocol === 'openai') {
    const client = new OpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0 });
    for (const model of ['openai/m', 'claude/m']) {
      const { data, response } = await client.chat.completions.create({ model, messages }).withResponse();
      assert.equal(data.choices[0].message.content, 'All is done.');
      assert.equal(response.headers.get('x-platform-tools'), 'enabled');
      assert.equal((await client.chat.completions.stream({ model, messages }).finalChatCompletion()).choices[0].message.content, 'All is done.');
    }
    return;
  }
  const client = new Anthropic({ baseURL: `${BASE}/anthropic`, apiKey: TOKEN, maxRetries: 0 });
  for (const model of ['openai/m', 'claude/m']) {
    const request = { model, max_tokens: 100, messages };
    assert.equal((await client.messages.create(request)).content[0].text, 'All is done.');
    assert.equal((await client.messages.stream(request).finalMessage()).content[0].text, 'All is done.');
  }
}

const open = createOpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, headers: defaultHeaders });
const claude = createAnthropic({ baseURL: `${BASE}/anthropic/v1`, apiKey: TOKEN, headers: defaultHeaders });
const all = {
  'openai, same protocol': () => openai('openai/m'),
  'openai, other protocol': () => openai('claude/m'),
  'openai, responses': () => responses('openai/m'),
  'openai, responses of the other protocol': () => responses('claude/m'),
  'anthropic, same protocol': () => anthropic('claude/m'),
  'anthropic, other protocol': () => anthropic('openai/m'),
  'anthropic, count of tokens': () => counting(),
  'openai, with the tools of the server': () => serverTools('openai'),
  'openai, responses with the tools of the server': () => serverTools('responses'),
  'anthropic, with the tools of the server': () => serverTools('anthropic'),
  'ai and @ai-sdk/openai': () => adapter(open.chat('openai/m')),
  'ai and @ai-sdk/openai, responses': () => adapter(open.responses('openai/m'), { openai: { store: false } }),
  'ai and @ai-sdk/openai, responses of the other protocol': () => adapter(open.responses('claude/m'), { openai: { store: false } }),
  'ai and @ai-sdk/anthropic': () => adapter(claude('claude/m')),
};
for (const [name, run] of Object.entries(all)) {
  try {
    await run();
    console.log(`ok: ${name}`);
  } catch (e) {
    console.log(`FAILED: ${name}: ${e.stack}`);
    process.exitCode = 1;
  }
}
