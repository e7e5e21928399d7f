// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// LangChain with the adapters of both vendors, and its agent on LangGraph: tools, structured answers, streams.
import { ChatAnthropic } from '@langchain/anthropic';
import { HumanMessage, mapChatMessagesToStoredMessages, mapStoredMessagesToChatMessages } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';
import { AGENT, API, BASE, MODEL, TOKEN, cached, description, headers, input, isWeather, load, lookSafely, play, prompt, save, saysDone, weather } from './errands.mjs';

const chat = (model, defaultQuery) => {
  if (API === 'messages') {
    return new ChatAnthropic({ model, apiKey: TOKEN, anthropicApiUrl: `${BASE}/anthropic`, maxRetries: 0, maxTokens: 1000, clientOptions: { defaultHeaders: headers, defaultQuery } });
  }
  const configuration = { baseURL: `${BASE}/openai/v1`, defaultHeaders: headers, defaultQuery };
  return new ChatOpenAI({ model, apiKey: TOKEN, configuration, maxRetries: 0, useResponsesApi: API === 'responses', zdrEnabled: true });
};
const lookTool = tool(lookSafely, { name: 'look', description, schema: input });

const errand = async (n, history, model = chat(MODEL)) => {
  const agent = createAgent({ model, tools: [lookTool], systemPrompt: 'Be brief.' });
  let state;
  for await (const s of await agent.stream({ messages: [...history, new HumanMessage(prompt(n))] }, { streamMode: 'values' })) state = s;
  const last = state.messages.at(-1);
  saysDone(n, last.text);
  cached(last.usage_metadata?.input_token_details?.cache_read);
  return state.messages;
};

await play({
  first: {
    tools: async () => save(mapChatMessagesToStoredMessages(await errand('one', []))),
    structured: async () => isWeather(await chat(MODEL).withStructuredOutput(weather).invoke(prompt('three'))),
    fallback: () => errand('four', [], chat('m', { agent: AGENT })),
  },
  second: { reload: async () => errand('two', mapStoredMessagesToChatMessages(load())) },
});
