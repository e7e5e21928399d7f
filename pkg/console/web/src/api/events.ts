// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The events of a task, read where they are looked at: a sparse cache of pages by sequence number, and the live stream.
import { batch, signal } from '@preact/signals';
import { ApiError, aborted, get, inNamespace, query } from './client';
import { awake } from './list';
import { firstEvents } from './paths';
import { overview, type EventCounts, type Mark, type Overview } from './overview';
import { Backoff, frames } from './stream';
import { failed, kindOf } from '../ui/kinds';
import type { Event, EventPage, Gap } from './types';

const pageSize = 100;
const mostPages = 60; // in memory
const finely = 4000; // events of which an overview has short parts
const mostBehind = 500; // events after which a page that was away jumps to the end rather than streaming them all

// Rows is what a list of events shows, by index.
export interface Rows {
  total(): number; // reads a signal
  at(index: number): Event | undefined;
  need(from: number, to: number): void; // loads [from, to) if it is missing
  indexOf(seq: number): number; // -1 if it is not among the rows
}

export type Live = 'loading' | 'live' | 'waiting' | 'complete';

// lasting reports whether asking again brings the same answer.
function lasting(e: unknown): boolean {
  return e instanceof ApiError && e.code >= 400 && e.code < 500 && e.code !== 429;
}

export class Timeline implements Rows {
  readonly oldest = signal(1); // the first event that is kept
  readonly latest = signal(0); // the newest event
  readonly version = signal(0); // changes when rows were loaded
  readonly drawn = signal(0); // changes when the overview has to be drawn, a few times a second at most
  readonly live = signal<Live>('loading');
  readonly error = signal<unknown>(null);
  private readonly pages = new Map<number, Array<Event | undefined>>(); // in the order of use
  private readonly known = new Map<number, Mark>(); // of all events that were loaded once
  private readonly loading = new Map<number, AbortController>();
  private readonly patience = new Backoff();
  private wanted: number[] = [];
  private readonly end = new AbortController();
  private readonly path: string;
  private queue: Event[] = [];
  private read = 0; // when the end of the stream was last known
  private timer = 0;
  private seenFrom = 0;
  private frame = 0;
  private redraw = 0;

  constructor(task: string) {
    this.path = inNamespace('tasks', task);
  }

  total(): number {
    return Math.max(0, this.latest.value - this.oldest.value + 1);
  }

  indexOf(seq: number): number {
    return seq >= this.oldest.value && seq <= this.latest.value ? seq - this.oldest.value : -1;
  }

  at(index: number): Event | undefined {
    return this.seq(index + this.oldest.value);
  }

  seq(n: number): Event | undefined {
    return this.pages.get(Math.floor((n - 1) / pageSize))?.[(n - 1) % pageSize];
  }

  // marks describes what is known of the stream, in parts of a length that suits an overview.
  marks(): Mark[] {
    const known = [...this.known.values()];
    return this.counted ? [...this.counted.marks, ...known.filter((m) => m.from > (this.counted?.latest ?? 0))] : known;
  }

  private counted: Overview | undefined;
  private counting = false;

  // changed has the overview drawn after the rows, so that they do not wait for it.
  private changed(): void {
    this.redraw ||= window.setTimeout(() => {
      this.redraw = 0;
      this.drawn.value++;
      void this.count();
    }, 250);
  }

  // count reads what the server has counted of the whole stream, and again when the stream has become a tenth longer.
  private async count(): Promise<void> {
    const latest = this.latest.peek();
    if (this.counting || latest < 300 || latest < 1.1 * (this.counted?.latest ?? 0)) return;
    this.counting = true;
    try {
      this.counted = overview(await get<EventCounts>(query(`${this.path}/events/counts`, { buckets: 300 }), this.end.signal));
      this.drawn.value++;
    } catch {
      // The overview shows what was loaded.
    }
    setTimeout(() => (this.counting = false), 5000);
  }

  need(from: number, to: number): void {
    const moved = from - this.seenFrom;
    const jumped = Math.abs(moved) > to - from;
    const missing = new Set<number>();
    const look = (i: number) => {
      const n = i + this.oldest.value;
      if (n >= this.oldest.value && n <= this.latest.value && !this.seq(n)) missing.add(Math.floor((n - 1) / pageSize));
    };
    for (let i = from; i < to; i++) look(i);
    if (!jumped && moved !== 0) look(moved > 0 ? to + pageSize : from - pageSize); // what comes next is there before it is seen
    this.seenFrom = from;
    if (missing.size === 0) return;
    const kept = new Set([...missing].map((p) => this.loading.get(p)));
    for (const [p, c] of this.loading) {
      if (kept.has(c)) continue;
      c.abort(); // scrolled past
      this.loading.delete(p);
    }
    this.wanted = [...missing].filter((p) => !this.loading.has(p));
    // Who scrolls fast does not look at what passes: it is read when the view has come to rest.
    if (jumped) {
      clearTimeout(this.timer);
      this.timer = 0;
    }
    this.timer ||= window.setTimeout(() => {
      this.timer = 0;
      this.pump();
    }, 80);
  }

  // open loads what is around an event, or both ends for 0, then follows the stream until close.
  async open(seq: number): Promise<void> {
    const backoff = new Backoff();
    while (!this.end.signal.aborted && this.live.value === 'loading') {
      try {
        const pages = await Promise.all(firstEvents(`${this.path}/events`, seq).map((path) => get<EventPage>(path, this.end.signal)));
        batch(() => {
          for (const p of pages) this.apply(p);
          this.live.value = 'waiting';
        });
      } catch (e) {
        if (aborted(e)) return;
        this.error.value = e;
        if (lasting(e)) return;
        await backoff.wait(this.end.signal);
      }
    }
    const stop = awake.subscribe((shown) => {
      this.following?.abort();
      if (shown && !this.end.signal.aborted && this.live.value !== 'complete') void this.follow((this.following = new AbortController()));
    });
    this.end.signal.addEventListener('abort', () => (stop(), this.following?.abort()), { once: true });
  }

  private following: AbortController | undefined;

  close(): void {
    this.end.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    clearTimeout(this.redraw);
    for (const c of this.loading.values()) c.abort();
  }

  private pump(): void {
    while (this.loading.size < 2) {
      const p = this.wanted.shift();
      if (p === undefined) return;
      const c = new AbortController();
      const parts = this.wanted[0] === p + 1 ? [p, p + 1] : [p]; // neighbours are one request
      if (parts.length > 1) this.wanted.shift();
      for (const part of parts) this.loading.set(part, c);
      this.page(p, c.signal, parts.length)
        .catch(async (e: unknown) => {
          if (aborted(e)) return;
          this.error.value = e;
          if (lasting(e)) return;
          await this.patience.wait(c.signal); // whoever looks at these rows need not move to have them
          if (!c.signal.aborted) this.wanted.unshift(...parts);
        })
        .finally(() => {
          for (const part of parts) if (this.loading.get(part) === c) this.loading.delete(part);
          this.pump();
        });
    }
  }

  private async page(p: number, signal: AbortSignal, pages = 1): Promise<void> {
    this.apply(await get<EventPage>(query(`${this.path}/events`, { after: p * pageSize, limit: pages * pageSize }), signal));
  }

  private apply(got: EventPage): void {
    this.read = Date.now();
    this.patience.reset();
    batch(() => {
      for (const e of got.events.sort((a, b) => a.seq - b.seq)) this.put(e);
      this.removed(got.gap);
      this.oldest.value = Math.max(this.oldest.value, got.oldestSeq ?? 0);
      this.latest.value = Math.max(this.latest.value, got.latestSeq);
      this.error.value = null;
      this.version.value++;
    });
    this.changed();
  }

  private put(e: Event): void {
    const p = Math.floor((e.seq - 1) / pageSize);
    const page = this.pages.get(p) ?? [];
    page[(e.seq - 1) % pageSize] = e;
    this.mark(e);
    this.pages.delete(p);
    this.pages.set(p, page); // the last in the order of use
    for (const old of this.pages.keys()) {
      if (this.pages.size <= mostPages) break;
      this.pages.delete(old);
    }
  }

  private mark(e: Event): void {
    const size = e.seq <= 200 ? 1 : e.seq <= finely ? 4 : pageSize;
    const from = Math.floor((e.seq - 1) / size) * size + 1;
    let m = this.known.get(from);
    if (!m) this.known.set(from, (m = { from, to: from - 1, total: 0, counts: {} }));
    if (e.seq <= m.to) return; // it was counted, because events of a part come in order
    m.to = e.seq;
    m.total++;
    const kind = failed(e) ? 'failure' : kindOf(e.type);
    m.counts[kind] = (m.counts[kind] ?? 0) + 1;
  }

  private removed(gap: Gap | undefined): void {
    if (gap && gap.fromSeq <= this.oldest.value && gap.toSeq >= this.oldest.value) this.oldest.value = gap.toSeq + 1;
  }

  // anew forgets everything: what was read is of another stream than the one that follows, for example after a restore.
  private anew(): void {
    this.queue = [];
    this.pages.clear();
    this.known.clear();
    this.counted = undefined;
    batch(() => {
      this.oldest.value = 1;
      this.latest.value = 0;
      this.version.value++;
    });
  }

  private async follow(c: AbortController): Promise<void> {
    const backoff = new Backoff();
    while (!c.signal.aborted) {
      try {
        let from = this.newest();
        if (Date.now() - this.read > 5000) {
          const now = await get<EventPage>(query(`${this.path}/events`, { after: from, limit: 1 }), c.signal);
          if (now.latestSeq - from > mostBehind) this.latest.value = from = now.latestSeq; // what is between is read where it is looked at
        }
        for await (const f of frames(query(`${this.path}/stream`, { after: from }), c.signal, {}, () => this.begun())) {
          this.read = Date.now();
          backoff.reset();
          if (this.take(f.event, f.data)) return;
        }
      } catch (e) {
        if (c.signal.aborted) return;
        if (e instanceof ApiError && (e.code === 401 || e.code === 403 || e.code === 404)) {
          this.error.value = e;
          return;
        }
      }
      this.live.value = 'waiting';
      await backoff.wait(c.signal);
    }
  }

  private begun(): void {
    batch(() => {
      this.live.value = 'live';
      this.error.value = null;
    });
  }

  private newest(): number {
    return this.queue.at(-1)?.seq ?? this.latest.peek();
  }

  // take handles a frame of the stream, and reports whether it was the last.
  private take(kind: string, data: string): boolean {
    if (kind === 'stream_complete') {
      this.flush();
      this.live.value = 'complete';
      return true;
    }
    const value = JSON.parse(data) as Event & Gap;
    if (kind === 'error') throw new Error('the stream ended');
    if (kind === 'gap' && value.reason === 'ahead') this.anew();
    else if (kind === 'gap') this.removed(value);
    else if (kind === 'execution_event') this.queue.push(value);
    this.frame ||= requestAnimationFrame(() => this.flush());
    return false;
  }

  // flush shows what has arrived since the last frame was painted.
  private flush(): void {
    this.frame = 0;
    const events = this.queue;
    this.queue = [];
    if (events.length === 0) return;
    batch(() => {
      for (const e of events) {
        this.put(e);
        if (e.seq > this.latest.value) this.latest.value = e.seq;
      }
      this.version.value++;
    });
    this.changed();
  }
}
