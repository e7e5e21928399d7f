// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The events of a task that have one of some types, or contain a text. They are read page by page, from the first.
import { batch, signal } from '@preact/signals';
import { aborted, get, inNamespace, query } from './client';
import type { Rows, Timeline } from './events';
import type { Event, EventPage } from './types';

export interface Filter {
  types: readonly string[]; // empty: all
  text: string;
}

export class Selection implements Rows {
  readonly version = signal(0);
  readonly error = signal<unknown>(null);
  readonly exhausted = signal(false); // everything was looked at that was there
  readonly seen = signal(0); // how far the stream was looked at
  private readonly events: Event[] = [];
  private readonly size = signal(0);
  private readonly end = new AbortController();
  private busy = false;
  private timer = 0;

  constructor(
    private readonly task: string,
    private readonly filter: Filter,
    private readonly timeline: Timeline,
  ) {}

  total(): number {
    return this.size.value;
  }

  at(index: number): Event | undefined {
    return this.events[index];
  }

  indexOf(seq: number): number {
    return this.events.findIndex((e) => e.seq === seq);
  }

  // need loads a page more when the end of what is known comes into view.
  need(_from: number, to: number): void {
    if (to >= this.events.length && !this.exhausted.value) void this.load();
  }

  // start loads the first page, and looks again when the stream grows, at most once a second.
  start(): void {
    void this.load();
    const stop = this.timeline.latest.subscribe((latest) => {
      if (latest <= this.seen.value || !this.exhausted.value || this.timer) return;
      this.timer = window.setTimeout(() => {
        this.timer = 0;
        void this.load();
      }, 1000);
    });
    this.end.signal.addEventListener('abort', () => (stop(), clearTimeout(this.timer)), { once: true });
  }

  close(): void {
    this.end.abort();
  }

  private async load(): Promise<void> {
    if (this.busy || this.end.signal.aborted) return;
    this.busy = true;
    try {
      const page = await get<EventPage>(this.path(), this.end.signal);
      batch(() => {
        this.events.push(...page.events);
        const last = page.events.at(-1)?.seq ?? 0;
        this.seen.value = Math.max(this.seen.value, last, page.nextSeq ?? 0);
        this.exhausted.value = this.seen.value >= page.latestSeq || (page.events.length === 0 && !page.nextSeq);
        if (this.exhausted.value) this.seen.value = Math.max(this.seen.value, page.latestSeq);
        this.size.value = this.events.length;
        this.error.value = null;
        this.version.value++;
      });
    } catch (e) {
      if (!aborted(e)) this.error.value = e;
    } finally {
      this.busy = false;
    }
    // A text that is rare may need several looks until one finds something.
    if (!this.error.value && !this.exhausted.value && this.events.length < 50) void this.load();
  }

  private path(): string {
    const q = new URLSearchParams({ after: String(this.seen.value), limit: '100' });
    for (const t of this.filter.types) q.append('type', t);
    if (this.filter.text) q.set('q', this.filter.text);
    return `${inNamespace('tasks', this.task, 'events')}?${q}`;
  }
}

// nearest returns the first event of some types after a sequence, or the last one before it.
export async function nearest(task: string, types: readonly string[], seq: number, forward: boolean): Promise<number | undefined> {
  const q = new URLSearchParams(forward ? { after: String(seq), limit: '1' } : { before: String(seq), limit: '1' });
  for (const t of types) q.append('type', t);
  const page = await get<EventPage>(`${inNamespace('tasks', task, 'events')}?${q}`);
  return page.events[0]?.seq;
}

// firstEvent is the one that a run began with, or the oldest that is kept.
export async function firstEvent(task: string, signal: AbortSignal): Promise<Event | undefined> {
  return (await get<EventPage>(query(inNamespace('tasks', task, 'events'), { after: 0, limit: 1 }), signal)).events[0];
}

// oneEvent is for a details pane whose event is not among the rows.
export async function oneEvent(task: string, seq: number, signal: AbortSignal): Promise<Event | undefined> {
  const page = await get<EventPage>(query(inNamespace('tasks', task, 'events'), { after: seq - 1, limit: 1 }), signal);
  return page.events[0]?.seq === seq ? page.events[0] : undefined;
}
