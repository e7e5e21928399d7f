// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The package openai: its runners of tools, its parsers of structured answers, its streams.
import OpenAI from 'openai';
import { ResponsesToolRunner } from 'openai/helpers/responses-tool-runner';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { AGENT, API, BASE, MODEL, TOKEN, cached, description, headers, input, isWeather, load, lookSafely, play, prompt, save, saysDone, weather } from './errands.mjs';

const options = { baseURL: `${BASE}/openai/v1`, apiKey: TOKEN, maxRetries: 0, defaultHeaders: headers };
const client = new OpenAI(options);
const ofAgent = new OpenAI({ ...options, defaultQuery: { agent: AGENT } });

const chat = () => {
  const tools = [zodFunction({ name: 'look', parameters: input, description, function: lookSafely })];
  const errand = async (n, history, c = client, model = MODEL) => {
    const messages = [...history, { role: 'user', content: prompt(n) }];
    const runner = c.chat.completions.runTools({ model, messages, tools, stream: true, stream_options: { include_usage: true } });
    saysDone(n, await runner.finalContent());
    cached((await runner.finalChatCompletion()).usage?.prompt_tokens_details?.cached_tokens);
    return runner.messages;
  };
  return {
    first: {
      tools: async () => save(await errand('one', [])),
      structured: async () => {
        const answer = await client.chat.completions.parse({ model: MODEL, messages: [{ role: 'user', content: prompt('three') }], response_format: zodResponseFormat(weather, 'weather') });
        isWeather(answer.choices[0].message.parsed);
        cached(answer.usage?.prompt_tokens_details?.cached_tokens);
      },
      fallback: () => errand('four', [], ofAgent, 'm'),
    },
    second: { reload: () => errand('two', load()) },
  };
};

// asSent leaves out what the package adds to an answer for its user, because the vendor refuses these members in a request.
const asSent = (items) => JSON.parse(JSON.stringify(items, (name, value) => (name === 'parsed' || name === 'parsed_arguments' ? undefined : value)));

const responses = () => {
  const tool = { type: 'function', name: 'look', description, strict: true, parameters: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], additionalProperties: false } };
  const errand = async (n, history, c = client, model = MODEL) => {
    const conversation = [...history, { role: 'user', content: prompt(n) }];
    const runner = new ResponsesToolRunner({ functions: [{ tool, execute: lookSafely }] });
    let checkpoint;
    const answer = await runner.run(c, { model, input: conversation, store: false }, { stream: true, ledger: { runId: n, save: (state) => { checkpoint = state; } } });
    saysDone(n, answer.output_text);
    cached(answer.usage?.input_tokens_details?.cached_tokens);
    return asSent([...checkpoint.history, ...answer.output]);
  };
  return {
    first: {
      tools: async () => save(await errand('one', [])),
      structured: async () => {
        const answer = await client.responses.parse({ model: MODEL, input: prompt('three'), text: { format: zodTextFormat(weather, 'weather') } });
        isWeather(answer.output_parsed);
      },
      fallback: () => errand('four', [], ofAgent, 'm'),
    },
    second: { reload: () => errand('two', load()) },
  };
};

await play(API === 'chat completions' ? chat() : responses());
