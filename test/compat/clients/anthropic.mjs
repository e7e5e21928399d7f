// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The package @anthropic-ai/sdk: its runner of tools, its parser of structured answers, its streams.
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { AGENT, BASE, MODEL, TOKEN, cached, description, headers, input, isWeather, load, look, play, prompt, save, saysDone, weather } from './errands.mjs';

const options = { baseURL: `${BASE}/anthropic`, apiKey: TOKEN, maxRetries: 0, defaultHeaders: headers };
const client = new Anthropic(options);
const tools = [betaZodTool({ name: 'look', inputSchema: input, description, run: look })];
const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }];

const errand = async (n, history, c = client, model = MODEL) => {
  const messages = [...history, { role: 'user', content: prompt(n) }];
  const runner = c.beta.messages.toolRunner({ model, max_tokens: 1000, messages, tools, system, stream: true });
  let last;
  for await (const stream of runner) last = await stream.finalMessage();
  saysDone(n, last.content.find((b) => b.type === 'text')?.text);
  cached(last.usage.cache_read_input_tokens);
  return runner.params.messages;
};

await play({
  first: {
    tools: async () => save(await errand('one', [])),
    structured: async () => {
      const answer = await client.messages.parse({ model: MODEL, max_tokens: 1000, messages: [{ role: 'user', content: prompt('three') }], output_config: { format: zodOutputFormat(weather) } });
      isWeather(answer.parsed_output);
    },
    fallback: () => errand('four', [], new Anthropic({ ...options, defaultQuery: { agent: AGENT } }), 'm'),
  },
  second: { reload: () => errand('two', load()) },
});
