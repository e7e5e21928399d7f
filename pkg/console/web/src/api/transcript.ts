// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The messages of a session, read in parts, and the turn that is being answered.
import { batch, signal } from '@preact/signals';
import { ApiError, aborted, get, inNamespace, post, query, type Options, apiVersion } from './client';
import type { Message, Transcript } from './kinds';
import { Backoff, frames, type Frame } from './stream';

const page = 200; // messages in a part

// Call is a call of a tool in the present turn.
export interface Call {
  id: string;
  name: string;
  args?: unknown;
  result?: unknown;
  done: boolean;
}

// Step is a part of the present answer: text, or a call.
export type Step = { text: string } | { call: Call };

interface Data {
  sessionId?: string;
  content?: string;
  restart?: boolean;
  toolCall?: { id: string; name: string; args?: unknown; result?: unknown };
  outcome?: string;
  error?: { code: string; message: string };
}

// cut says what it means that the connection of a turn ended before the turn did.
function cut(unanswered: boolean): string {
  if (unanswered) return 'The connection was cut before the server answered. If your message is not above, it did not arrive; send it again.';
  return 'The connection was cut before the answer was complete, and a turn that is not to go on when you leave ends with its connection. Send the message again, or let the turn go on when you leave.';
}

// Conversation holds what was said in a session and what is being said.
export class Conversation {
  readonly messages = signal<Message[]>([]);
  readonly older = signal(false); // there are messages before those that are shown
  readonly truncated = signal(false); // the oldest ones were removed for good
  readonly loading = signal(true);
  readonly error = signal<unknown>(null); // of reading the messages
  readonly question = signal(''); // of the present turn
  readonly steps = signal<Step[]>([]);
  readonly busy = signal(false);
  readonly background = signal(false); // the present turn goes on without this page
  readonly problem = signal<unknown>(null); // of the last turn
  private readonly life = new AbortController();
  private turn = new AbortController();
  private reading = Promise.resolve();
  private readonly called = signal('');

  constructor(
    name: string, // empty until the first answer of a new session
    private readonly named: (name: string) => void,
  ) {
    this.called.value = name;
  }

  get name(): string {
    return this.called.value;
  }

  stop(): void {
    this.life.abort();
  }

  // load reads the newest messages, or, later, those that were added. Two reads at a time would add the same ones.
  load(): Promise<void> {
    return (this.reading = this.reading.then(() => this.added()));
  }

  private async added(): Promise<void> {
    const last = this.messages.value.at(-1)?.order;
    if (this.name) {
      await this.read(last === undefined ? { newest: page } : { after: last, limit: page }, (t) => {
        this.messages.value = [...this.messages.value, ...(t.items ?? [])];
        if (t.items?.length && !this.busy.value) this.clear(); // a turn that was cut is in the session now
        if (last === undefined) this.older.value = (t.items?.length ?? 0) === page && t.messageCount > page;
      });
    }
    this.loading.value = false;
  }

  // before adds the part before what is shown.
  async before(): Promise<void> {
    const first = this.messages.value[0];
    await this.read({ newest: page + 1, through: first?.id }, (t) => {
      const items = (t.items ?? []).filter((m) => m.id !== first?.id);
      this.messages.value = [...items, ...this.messages.value];
      this.older.value = items.length === page;
    });
  }

  private async read(params: Record<string, string | number | undefined>, apply: (t: Transcript) => void): Promise<void> {
    try {
      const t = await get<Transcript>(query(inNamespace('sessions', this.name, 'transcript'), params), this.life.signal);
      batch(() => {
        apply(t);
        this.truncated.value = t.truncated ?? false;
        this.error.value = null;
      });
    } catch (e) {
      if (!aborted(e)) this.error.value = e;
    }
  }

  // say sends a message. Leaving the page cancels the turn, unless it is one in the background.
  async say(message: string, background: boolean, provider: string): Promise<void> {
    this.begin(message, background);
    const spec = { message, background, ...(this.name ? { sessionId: this.name } : {}), ...(provider ? { provider } : {}) };
    await this.follow({ method: 'POST', body: { apiVersion, kind: 'Chat', spec } });
  }

  // attach shows the newest turn in the background, as long as it is not over.
  async attach(): Promise<void> {
    this.begin('', true);
    await this.follow(null);
  }

  // cancel ends the present turn. One in the background ends for everybody who follows it.
  async cancel(): Promise<void> {
    if (!this.background.value) return this.turn.abort();
    try {
      await post(inNamespace('sessions', this.name, 'cancel'), {});
    } catch (e) {
      this.problem.value = e;
    }
  }

  private begin(question: string, background: boolean): void {
    this.turn = new AbortController();
    batch(() => {
      this.question.value = question;
      this.steps.value = [];
      this.problem.value = null;
      this.background.value = background;
      this.busy.value = question !== '';
    });
  }

  // follow shows the frames of a turn. A connection that is cut is opened again if the turn goes on without it: it is followed from the
  // frame after the last one, and what was said is never sent twice.
  private async follow(request: Options | null): Promise<void> {
    const end = AbortSignal.any([this.life.signal, this.turn.signal]);
    const backoff = new Backoff();
    let ask = request;
    let last = '';
    for (let over = false; !over && !end.aborted;) {
      try {
        const stream = ask ? frames(inNamespace('chats'), end, ask) : frames(query(inNamespace('sessions', this.name, 'turn'), { after: last }), end);
        for await (const f of stream) {
          last = f.id || last;
          over ||= this.frame(f);
          if (this.name) ask = null; // the server has the turn
          backoff.reset();
        }
        if (!over && (ask || !this.background.value)) throw new ApiError(0, '');
      } catch (e) {
        if (end.aborted) break;
        const answered = e instanceof ApiError && e.code > 0;
        const refused = answered && e.code < 500;
        if (refused && !request) break; // there is no turn to attach to
        if (ask || refused || !this.background.value) {
          this.problem.value = answered || (ask && e instanceof ApiError && e.message) ? e : new Error(cut(ask !== null));
          break;
        }
      }
      if (!over) await backoff.wait(end);
    }
    if (this.life.signal.aborted) return;
    if (this.turn.signal.aborted) this.problem.value = new Error('The turn was cancelled.');
    const before = this.messages.value.length;
    await this.load();
    batch(() => {
      this.busy.value = false;
      // What the session has is shown once. What it has not stays, to be sent again.
      if (!this.problem.value || this.messages.value.length > before) this.clear();
    });
  }

  private clear(): void {
    this.steps.value = [];
    this.question.value = '';
  }

  // frame applies one event of the stream and reports whether it was the last.
  private frame(f: Frame): boolean {
    const d = JSON.parse(f.data) as Data;
    if (d.sessionId && !this.name) {
      this.called.value = d.sessionId;
      this.named(d.sessionId);
    }
    const steps = [...this.steps.value];
    if (f.event === 'message') {
      if (d.restart && steps.length > 0 && 'text' in (steps.at(-1) as Step)) steps.pop();
      const open = steps.at(-1);
      if (d.content && open && 'text' in open) steps[steps.length - 1] = { text: open.text + d.content };
      else if (d.content) steps.push({ text: d.content });
    } else if (f.event === 'tool_call' && d.toolCall) steps.push({ call: { ...d.toolCall, done: false } });
    else if (f.event === 'tool_result' && d.toolCall) {
      const i = steps.findLastIndex((s) => 'call' in s && s.call.id === d.toolCall?.id);
      const s = steps[i];
      if (s && 'call' in s) steps[i] = { call: { ...s.call, result: d.toolCall.result, done: true } };
    } else if (f.event === 'error') this.problem.value = new Error(d.error?.message ?? 'The turn ended for a reason that the server did not name.');
    batch(() => {
      this.steps.value = steps;
      this.busy.value = true;
    });
    return f.event === 'error' || f.event === 'done';
  }
}
