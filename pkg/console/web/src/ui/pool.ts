// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The rows of a list of any length that are in view. Only as many elements exist as fit: each is used again for another row.
// Scrolling does not go through the tree of components, so that a frame costs no more than what changes on the screen.

export const rowHeight = 28;
const highest = 15_000_000; // px: browsers cannot make higher elements; longer lists scroll at a ratio
const spare = 1; // rows above and below the view, which nobody sees: the rows stay where they are until they are drawn anew
const rest = 80; // ms without a jump after which rows are drawn
const far = 30_000; // rows: none is placed further from the origin, because positions are not exact beyond 16,000,000 px

export interface Source {
  total: number;
  selected: number; // -1: none
  follow?: boolean; // keep to the end while the end is in view
  begin?: number | 'end'; // the row that is first shown, in the middle
  draw: (slot: HTMLElement, index: number) => void; // shows a row in an element that may show another one, and changes what differs
  clear?: (slot: HTMLElement) => void; // gives up what draw made
  need: (from: number, to: number) => void; // loads what is missing
  there?: (from: number, to: number) => boolean; // whether one of the rows is loaded; all are if it is left out
  name?: (index: number) => string; // what is shown in place of rows that pass unread
  onSelect: (index: number) => void;
  onView?: (from: number, to: number) => void;
}

interface Slot {
  element: HTMLElement;
  index: number;
  place: number; // rows from the origin
  of: number; // how many rows there were
  chosen: boolean;
}

export class Pool {
  private readonly slots: Slot[] = [];
  private readonly filler: HTMLElement;
  private readonly lines: HTMLElement;
  private readonly passed: HTMLElement;
  private readonly watch = new ResizeObserver(() => this.resized());
  private top = 0; // px in the list, as if it had its full height
  private height = 0; // px of the view
  private origin = 0; // the row from which the others are placed
  private from = 0; // the first row that has an element
  private seen = 0; // the first row when the view last moved
  private settling = 0; // the timer while rows pass
  private size = 0; // rows
  private follow = false;
  private atEnd = false;
  private later = -1; // the row to show when the list has a height

  constructor(
    private readonly box: HTMLElement,
    private readonly source: () => Source,
  ) {
    this.filler = box.querySelector('.filler') as HTMLElement;
    this.lines = box.querySelector('.lines') as HTMLElement;
    this.passed = box.querySelector('.passed') as HTMLElement;
    const { begin = 0 } = source();
    this.height = box.clientHeight;
    this.measure();
    if (begin === 'end') this.scrollTo(this.full());
    else if (begin > 0) this.show(begin, 'center');
    box.addEventListener('scroll', this.scrolled, { passive: true });
    this.lines.addEventListener('click', this.clicked);
    this.watch.observe(box);
  }

  end(): void {
    this.watch.disconnect();
    clearTimeout(this.settling);
    this.box.removeEventListener('scroll', this.scrolled);
    this.lines.removeEventListener('click', this.clicked);
    this.keep(0);
  }

  // changed draws what may differ in the source.
  changed(): void {
    const { total, follow = false } = this.source();
    if (total !== this.size || follow !== this.follow) {
      this.measure();
      if (follow && this.atEnd) this.scrollTo(this.full());
      else this.read();
    }
    this.draw();
  }

  show(index: number, where: 'nearest' | 'center' = 'nearest'): void {
    if (this.height === 0) this.later = index; // the list is not shown yet
    const at = index * rowHeight;
    if (where === 'center') this.scrollTo(Math.max(0, at - this.height / 2 + rowHeight));
    else if (at < this.top) this.scrollTo(at);
    else if (at + rowHeight > this.top + this.height) this.scrollTo(at + rowHeight - this.height);
    this.draw();
  }

  toEnd(): void {
    this.scrollTo(this.full());
    this.atEnd = true;
    this.draw();
  }

  private full(): number {
    return this.size * rowHeight;
  }

  // ratio is that of px in the list to px of the scroll bar.
  private ratio(): number {
    const full = this.full();
    const room = Math.min(full, highest) - this.height;
    return full > highest && room > 0 ? (full - this.height) / room : 1;
  }

  private measure(): void {
    const { total, follow = false } = this.source();
    this.size = total;
    this.follow = follow;
    this.filler.style.height = `${Math.min(this.full(), highest)}px`;
    this.box.style.setProperty('--digits', String(String(total).length));
  }

  private read(): void {
    const at = this.box.scrollTop;
    this.top = at * this.ratio();
    this.atEnd = at + this.height >= Math.min(this.full(), highest) - 2;
  }

  private scrollTo(px: number): void {
    this.box.scrollTop = px / this.ratio();
    this.read();
  }

  private readonly scrolled = (): void => {
    this.read();
    const [from, n] = this.range();
    const jump = Math.abs(from - this.seen) >= n;
    this.seen = from;
    const { there } = this.source();
    if (jump && there && !there(from, from + n)) this.pass(from, n);
    else this.draw();
  };

  // pass shows where the view is in place of rows that nobody has read and that are gone in the next frame.
  private pass(from: number, n: number): void {
    const { name, need, onView } = this.source();
    if (!this.settling) this.box.classList.add('passing');
    clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.draw(), rest);
    this.passed.textContent = name?.(from + Math.floor(n / 2)) ?? '';
    need(from, from + n);
    onView?.(...this.shown());
  }

  private settle(): void {
    if (!this.settling) return;
    clearTimeout(this.settling);
    this.settling = 0;
    this.box.classList.remove('passing');
  }

  // range returns the first row that gets an element, and how many do.
  private range(): [number, number] {
    const n = Math.min(this.size, Math.ceil(this.height / rowHeight) + 2 * spare + 1);
    return [Math.max(0, Math.min(Math.floor(this.top / rowHeight) - spare, this.size - n)), n];
  }

  // shown returns the rows that are in view, at least in part.
  private shown(): [number, number] {
    return [Math.floor(this.top / rowHeight), Math.min(this.size, Math.ceil((this.top + this.height) / rowHeight))];
  }

  private readonly clicked = (e: Event): void => {
    const line = e.target instanceof Element ? e.target.closest('.line') : null;
    const slot = this.slots.find((s) => s.element === line);
    if (slot) this.source().onSelect(slot.index);
  };

  private resized(): void {
    const before = this.height;
    const end = this.follow && this.atEnd;
    this.height = this.box.clientHeight;
    if (this.later >= 0 && this.height > 0) {
      this.scrollTo(Math.max(0, this.later * rowHeight - this.height / 2 + rowHeight));
      this.later = -1;
    } else {
      if (end) this.scrollTo(this.full());
      else this.read();
      const at = this.source().selected * rowHeight; // what was selected stays in view
      if (at >= 0 && before > 0 && at + rowHeight > this.top + this.height && at < this.top + before) this.scrollTo(at + rowHeight - this.height);
    }
    this.draw();
  }

  // keep makes or removes elements, so that there are n.
  private keep(n: number): void {
    while (this.slots.length > n) {
      const slot = this.slots.pop();
      if (!slot) return;
      this.source().clear?.(slot.element);
      slot.element.remove();
    }
    while (this.slots.length < n) {
      const element = document.createElement('div');
      element.id = `slot-${this.slots.length}`;
      element.className = 'line';
      element.setAttribute('role', 'option');
      element.setAttribute('aria-selected', 'false');
      this.lines.append(element);
      this.slots.push({ element, index: -1, place: NaN, of: -1, chosen: false });
    }
  }

  // move chooses the origin for rows that begin with from. Where all rows are new the elements stay where they are, so that a jump
  // changes their texts alone.
  private move(from: number, n: number): void {
    if (Math.abs(from - this.from) >= n) this.origin += from - this.from;
    else if (Math.abs(from - this.origin) > far) this.origin = from;
    this.from = from;
  }

  // draw shows the rows in view. Each element keeps its place in the document: the rows from the origin take them in turn.
  private draw(): void {
    const { selected, draw, need, onView } = this.source();
    const [from, n] = this.range();
    this.settle();
    this.seen = from;
    this.keep(n);
    this.move(from, n);
    this.lines.style.transform = `translateY(${this.origin * rowHeight - this.top}px)`;
    const first = (((from - this.origin) % n) + n) % n;
    let active = '';
    for (const [k, slot] of this.slots.entries()) {
      const index = from + ((k - first + n) % n);
      const place = index - this.origin;
      const { element } = slot;
      if (slot.place !== place) element.style.top = `${place * rowHeight}px`; // a transform for each row costs more to paint
      if (slot.index !== index) element.setAttribute('aria-posinset', String(index + 1));
      if (slot.of !== this.size) element.setAttribute('aria-setsize', String(this.size));
      const chosen = index === selected;
      if (slot.chosen !== chosen) element.setAttribute('aria-selected', String(chosen));
      if (chosen) active = element.id;
      Object.assign(slot, { index, place, chosen, of: this.size });
      draw(element, index);
    }
    if ((this.box.getAttribute('aria-activedescendant') ?? '') !== active) {
      if (active) this.box.setAttribute('aria-activedescendant', active);
      else this.box.removeAttribute('aria-activedescendant');
    }
    if (n === 0) return;
    need(from, from + n);
    onView?.(...this.shown());
  }
}
