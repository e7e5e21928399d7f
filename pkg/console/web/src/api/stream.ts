// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Answers that go on: server-sent events, and watches as lines of JSON.
import { send, type Options } from './client';

// Frame is one server-sent event.
export interface Frame {
  event: string;
  id: string;
  data: string;
}

// lines yields the lines of an answer as they arrive. It holds one line and one chunk at a time.
export async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      let from = 0;
      for (let at = rest.indexOf('\n'); at >= 0; at = rest.indexOf('\n', from)) {
        yield rest.slice(from, rest[at - 1] === '\r' ? at - 1 : at);
        from = at + 1;
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

// frames yields the events of a stream until it ends.
export async function* frames(path: string, signal: AbortSignal, o: Options = {}, opened?: () => void): AsyncGenerator<Frame> {
  const r = await send(path, { ...o, signal, accept: 'text/event-stream' });
  opened?.(); // the server has begun to answer
  if (!r.body || r.status === 204) return;
  let frame: Frame = { event: 'message', id: '', data: '' };
  for await (const line of lines(r.body)) {
    if (line === '') {
      if (frame.data) yield frame;
      frame = { event: 'message', id: frame.id, data: '' };
    } else if (line.startsWith('data:')) frame.data += (frame.data ? '\n' : '') + line.slice(line[5] === ' ' ? 6 : 5);
    else if (line.startsWith('event:')) frame.event = line.slice(6).trim();
    else if (line.startsWith('id:')) frame.id = line.slice(3).trim();
  }
}

// Backoff waits longer after each failure in a row: 0.5 s to 15 s, with a random part, so that pages do not come back at once.
export class Backoff {
  private failures = 0;

  reset(): void {
    this.failures = 0;
  }

  async wait(signal: AbortSignal): Promise<void> {
    const most = Math.min(15_000, 500 * 2 ** this.failures++);
    await pause(most / 2 + (Math.random() * most) / 2, signal);
  }
}

// pause waits, at most until signal is aborted.
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
