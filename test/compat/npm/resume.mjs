// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The AI SDK's chat state, unmodified, on background turns of this server: a page whose connection is cut in the middle of an
// answer gets the rest, and one that is reloaded gets the whole. The transport below is all that a user interface needs. BASE
// is the server, TOKEN may chat and read sessions.
import assert from 'node:assert/strict';
import { AbstractChat } from 'ai';

const { BASE, TOKEN } = process.env;
const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };

// frames reads server-sent events.
async function* frames(body) {
  const decoder = new TextDecoder();
  let held = '';
  for await (const bytes of body) {
    held += decoder.decode(bytes, { stream: true });
    for (let end = held.indexOf('\n\n'); end >= 0; end = held.indexOf('\n\n')) {
      const fields = Object.fromEntries(held.slice(0, end).split('\n').map((line) => line.split(/: (.*)/s)));
      held = held.slice(end + 2);
      if (fields.event) yield { id: Number(fields.id), type: fields.event, ...JSON.parse(fields.data) };
    }
  }
}

// PlatformTransport gives the AI SDK the frames of turns. page is what a page keeps of an answer: the last frame, and the text
// that is open.
class PlatformTransport {
  constructor(provider, page) {
    Object.assign(this, { provider, page });
  }

  async sendMessages({ chatId, messages, abortSignal }) {
    const message = messages.at(-1).parts.map((p) => p.text).join('');
    const body = JSON.stringify({ message, sessionId: chatId, provider: this.provider, background: true });
    return this.chunks(await fetch(`${BASE}/api/v1/chat`, { method: 'POST', headers, body, signal: abortSignal }));
  }

  async reconnectToStream({ chatId }) {
    const response = await fetch(`${BASE}/api/v1/chat/${chatId}/stream?after=${this.page.after}`, { headers });
    return response.status === 404 ? null : this.chunks(response);
  }

  chunks(response) {
    assert.equal(response.status, 200);
    const { page } = this;
    async function* convert() {
      if (!page.after) yield { type: 'start' };
      for await (const f of frames(response.body)) {
        page.after = f.id;
        page.seen.push(f);
        if (f.type !== 'message' && page.text) {
          yield { type: 'text-end', id: page.text };
          page.text = undefined;
        }
        if (f.type === 'message' && f.content) {
          if (!page.text) yield { type: 'text-start', id: (page.text = `t${f.id}`) };
          yield { type: 'text-delta', id: page.text, delta: f.content };
        }
        const call = f.toolCall;
        if (f.type === 'tool_call') yield { type: 'tool-input-available', toolCallId: call.id, toolName: call.name, input: call.args, dynamic: true };
        if (f.type === 'tool_result') yield { type: 'tool-output-available', toolCallId: call.id, output: call.result, dynamic: true };
        if (f.type === 'error') yield { type: 'error', errorText: f.error.message };
        if (page.cut?.(f)) throw new TypeError('network error'); // what fetch reports
      }
      yield { type: 'finish' };
    }
    return ReadableStream.from(convert());
  }
}

// Chat keeps its state in memory, as the SDK's own chats do for their frameworks.
class Chat extends AbstractChat {
  constructor({ messages = [], ...init }) {
    super({
      ...init,
      state: {
        status: 'ready',
        error: undefined,
        messages,
        pushMessage(m) { this.messages = [...this.messages, m]; },
        popMessage() { this.messages = this.messages.slice(0, -1); },
        replaceMessage(i, m) { this.messages = this.messages.with(i, m); },
        snapshot: (v) => structuredClone(v),
      },
    });
  }
}

const textOf = (messages) => messages.filter((m) => m.role === 'assistant').flatMap((m) => m.parts).filter((p) => p.type === 'text').map((p) => p.text).join('|');

async function resumes(provider) {
  const id = `resumed-${provider}`;
  const page = { after: 0, seen: [], cut: (f) => f.type === 'tool_call' };
  const first = new Chat({ id, transport: new PlatformTransport(provider, page) });
  await first.sendMessage({ text: 'take your time' });
  assert.equal(first.status, 'error');
  const shown = page.seen.length;
  assert.equal(page.seen.at(-1).type, 'tool_call');
  page.cut = undefined;
  await first.resumeStream();
  assert.equal(first.error, undefined);
  assert.equal(page.seen.at(-1).type, 'done');
  assert.ok(page.seen.length > shown);
  assert.deepEqual(page.seen.map((f) => f.id), page.seen.map((_, i) => i + 1), 'each frame once, in order');
  assert.equal(textOf(first.messages), 'I look first.|That is all of it.');
  // A page that was reloaded has nothing but what the user said.
  const reloaded = { after: 0, seen: [] };
  const second = new Chat({ id, messages: first.messages.slice(0, 1), transport: new PlatformTransport(provider, reloaded) });
  await second.resumeStream();
  assert.deepEqual(reloaded.seen, page.seen);
  assert.equal(textOf(second.messages), 'I look first.|That is all of it.');
  const call = second.messages[1].parts.find((p) => p.type === 'dynamic-tool');
  assert.equal(call.toolName, 'list_agents');
  assert.equal(call.state, 'output-available');
  assert.equal(call.output.success, true);
  // A session without a background turn has nothing to resume.
  const none = new Chat({ id: 'nothing', transport: new PlatformTransport(provider, { after: 0, seen: [] }) });
  await none.resumeStream();
  assert.equal(none.messages.length, 0);
}

for (const provider of ['openai', 'claude']) {
  try {
    await resumes(provider);
    console.log(`ok: ${provider}`);
  } catch (e) {
    console.log(`FAILED: ${provider}: ${e.stack}`);
    process.exitCode = 1;
  }
}
