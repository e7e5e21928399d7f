// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The package @openai/agents: agents with tools, answers of a type, streams.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { AGENT, API, BASE, MODEL, TOKEN, cached, description, headers, input, isWeather, load, look, play, prompt, save, saysDone, weather } from './errands.mjs';

setTracingDisabled(true);
const runner = (more = {}) => {
  const openAIClient = new OpenAI({ baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0, defaultHeaders: headers, ...more });
  return new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses: API === 'responses' }), tracingDisabled: true });
};
const lookTool = tool({ name: 'look', description, parameters: input, execute: look });
// Nothing is stored by the server, so the conversation is sent each time.
const modelSettings = { store: false };

const errand = async (n, history, r = runner(), model = MODEL) => {
  const agent = new Agent({ name: 'errands', instructions: 'Be brief.', model, modelSettings, tools: [lookTool] });
  const result = await r.run(agent, [...history, { role: 'user', content: prompt(n) }], { stream: true });
  await result.completed;
  if (result.error) throw result.error;
  saysDone(n, result.finalOutput);
  const details = result.rawResponses.at(-1).usage.inputTokensDetails;
  cached([details].flat()[0]?.cached_tokens);
  return result.history;
};

await play({
  first: {
    tools: async () => save(await errand('one', [])),
    structured: async () => {
      const agent = new Agent({ name: 'weather', model: MODEL, modelSettings, outputType: weather });
      isWeather((await runner().run(agent, prompt('three'))).finalOutput);
    },
    fallback: () => errand('four', [], runner({ defaultQuery: { agent: AGENT } }), 'm'),
  },
  second: { reload: () => errand('two', load()) },
});
