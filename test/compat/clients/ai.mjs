// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The AI SDK with the adapters of both vendors: loops of tools, structured answers, streams.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { AGENT, API, BASE, MODEL, TOKEN, cached, description, headers, input, isWeather, load, look, play, prompt, save, saysDone, weather } from './errands.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const asAgent = (url, init) => fetch(`${url}?agent=${AGENT}`, init);
const model = (name, more = {}) => {
  if (API === 'messages') return createAnthropic({ baseURL: `${BASE}/anthropic/v1`, apiKey: TOKEN, headers, ...more })(name);
  const openai = createOpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, headers, ...more });
  return API === 'responses' ? openai.responses(name) : openai.chat(name);
};
// Nothing is stored by the server, so the conversation is sent each time.
const providerOptions = API === 'responses' ? { openai: { store: false } } : {};
const tools = { look: tool({ description, inputSchema: input, execute: look }) };

const errand = async (n, history, of = model(MODEL)) => {
  const marks = API === 'messages' ? { anthropic: { cacheControl: { type: 'ephemeral' } } } : {};
  const messages = [...history, { role: 'user', content: prompt(n), providerOptions: marks }];
  let failed;
  const result = streamText({ model: of, messages, providerOptions, tools, stopWhen: stepCountIs(5), maxRetries: 0, onError: ({ error }) => { failed = error; } });
  const text = await result.text.catch((e) => { throw failed ?? e; });
  if (failed) throw failed;
  saysDone(n, text);
  const { usage } = (await result.steps).at(-1);
  cached(usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens);
  return [...messages, ...(await result.responseMessages)];
};

await play({
  first: {
    tools: async () => save(await errand('one', [])),
    structured: async () => {
      const answer = await generateText({ model: model(MODEL), prompt: prompt('three'), output: Output.object({ schema: weather }), maxRetries: 0 });
      isWeather(answer.output);
    },
    fallback: () => errand('four', [], model('m', { fetch: asAgent })),
  },
  second: { reload: () => errand('two', load()) },
});
