// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The events of a run: a bar of all of them, rows, and the details of one.
import { useComputed, useSignal, type Signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { explain } from '../../api/client';
import { Timeline, type Rows as Source } from '../../api/events';
import { useLoad } from '../../api/load';
import { seqIn } from '../../api/paths';
import { Selection, firstEvent, nearest, oneEvent } from '../../api/selection';
import type { Task } from '../../api/types';
import { useKeys } from '../../keys';
import { location, set } from '../../router';
import { EventDetails } from '../../ui/eventdetails';
import { drawEvent } from '../../ui/eventline';
import { count } from '../../ui/format';
import { failures, filters } from '../../ui/kinds';
import { Minimap } from '../../ui/minimap';
import { Rows, type RowsApi } from '../../ui/rows';
import { Empty, Failure, Loading, Notice } from '../../ui/states';

const seqInHash = (hash = location.value.hash) => seqIn(hash);

const states = { loading: '', live: ', live', waiting: ', not live', complete: '' };

export function RunEvents({ name, task }: { name: string; task: Task | undefined }) {
  const query = location.value.query;
  const kind = query.get('show') ?? '';
  const text = query.get('find') ?? '';
  const types = (filters[kind] ?? filters[''])?.types ?? [];
  const timeline = useMemo(() => new Timeline(name), [name]);
  const selection = useMemo(() => (types.length > 0 || text ? new Selection(name, { types, text }, timeline) : null), [timeline, kind, text]);
  const source: Source = selection ?? timeline;
  const list = useRef<RowsApi | null>(null);
  const search = useRef<HTMLInputElement>(null);
  const view = useSignal<[number, number]>([0, 0]);
  const note = useSignal('');
  const seq = seqInHash();

  useLayoutEffect(() => {
    void timeline.open(seqInHash(location.peek().hash));
    return () => timeline.close();
  }, [timeline]);
  useEffect(() => {
    selection?.start();
    return () => selection?.close();
  }, [selection]);

  void (timeline.version.value, selection?.version.value); // rows that were loaded are painted
  const total = source.total();
  const at = seq ? source.indexOf(seq) : -1;

  // An event that the address names comes into view, whoever changed the address.
  useLayoutEffect(() => {
    if (at >= 0) list.current?.show(at);
  }, [seq]);

  // Rows are drawn once it is known which: those around the event of the address, or the end of a run that goes on.
  const loading = useComputed(() => timeline.live.value === 'loading').value;
  const complete = useComputed(() => timeline.live.value === 'complete').value;
  const ready = total > 0 && !loading && task !== undefined;

  const select = (index: number, where?: 'center') => {
    const n = selection ? source.at(index)?.seq : index + timeline.oldest.value;
    if (!n) return;
    set({}, `seq=${n}`);
    list.current?.show(index, where);
  };
  const step = (by: number) => total > 0 && select(at < 0 ? (by > 0 ? view.peek()[0] : view.peek()[1] - 1) : Math.min(total - 1, Math.max(0, at + by)));
  const failure = async (forward: boolean) => {
    try {
      const n = await nearest(name, failures, seq || (forward ? 0 : timeline.latest.value + 1), forward);
      note.value = n ? '' : `There is no failure ${forward ? 'after' : 'before'} this event.`;
      if (!n) return;
      const among = source.indexOf(n);
      set(among < 0 ? { show: '', find: '' } : {}, `seq=${n}`);
      list.current?.show(among < 0 ? timeline.indexOf(n) : among, 'center');
    } catch (e) {
      note.value = explain(e);
    }
  };
  useKeys([
    { key: 'j', label: 'Next event', run: () => step(1) },
    { key: 'k', label: 'Event before', run: () => step(-1) },
    { key: 'ArrowDown', label: 'Next event', run: () => step(1) },
    { key: 'ArrowUp', label: 'Event before', run: () => step(-1) },
    { key: ']', label: 'Next failure', run: () => void failure(true) },
    { key: '[', label: 'Last failure before', run: () => void failure(false) },
    { key: 'Home', label: 'First event', run: () => select(0) },
    { key: 'End', label: 'Last event', run: () => (select(total - 1), list.current?.toEnd()) },
    { key: '/', label: 'Search the events', run: () => search.current?.focus() },
    { key: 'Escape', label: 'Close the details', run: () => set({}, '') },
  ]);

  // Times of the task are in whole seconds, and those of events are not, so a run begins with its first event.
  const first = useLoad(name, (signal) => firstEvent(name, signal)).data.value;
  const start = Date.parse(first?.createdAt ?? task?.metadata.creationTimestamp ?? '');
  const error = selection ? selection.error.value : timeline.error.value;
  return (
    <>
      <div class="bar">
        <label class="field">Show
          <select value={kind} onChange={(e) => set({ show: e.currentTarget.value })}>
            {Object.entries(filters).map(([k, f]) => <option key={k} value={k}>{f.label}</option>)}
          </select>
        </label>
        <form role="search" onSubmit={(e) => (e.preventDefault(), set({ find: search.current?.value ?? '' }), search.current?.blur())}>
          <input ref={search} type="search" placeholder="Text in the events" aria-label="Search the events" defaultValue={text} key={text} onInput={(e) => !e.currentTarget.value && text && set({ find: '' })} />
        </form>
        <button type="button" onClick={() => void failure(false)} title="Last failure before: [">‹ Failure</button>
        <button type="button" onClick={() => void failure(true)} title="Next failure: ]">Failure ›</button>
        <Status note={note} timeline={timeline} selection={selection} />
      </div>
      <Minimap name={name} timeline={timeline} view={selection ? undefined : view} seq={seq} onPick={(n) => {
        if (selection) set({ show: '', find: '' }, `seq=${n}`);
        else select(n - timeline.oldest.value, 'center');
      }} />
      {error && total === 0 ? <Failure error={error} /> : <Notice error={error} />}
      {!error && total === 0 && (loading || (selection && !selection.exhausted.value) ? <Loading what="events" /> : <Empty>{selection ? 'No event matches.' : 'Nothing has happened yet.'}</Empty>)}
      {ready && <div class={`split ${seq ? 'open' : ''}`}>
        <Rows
          label={`Events of ${name}`}
          total={total}
          selected={at}
          onSelect={(i) => select(i)}
          need={(from, to) => source.need(from, to)}
          there={(from, to) => {
            for (let i = from; i < to; i++) if (source.at(i)) return true;
            return false;
          }}
          name={(i) => count(selection ? i + 1 : i + timeline.oldest.peek())}
          onView={(from, to) => {
            if (view.peek()[0] !== from || view.peek()[1] !== to) view.value = [from, to];
          }}
          api={list}
          follow={!selection && !complete}
          begin={at >= 0 ? at : task.status?.completionTime || selection ? 0 : 'end'}
          draw={(slot, i) => drawEvent(slot, source.at(i), selection ? i + 1 : i + timeline.oldest.peek(), start)}
        />
        {seq > 0 && <Detail name={name} seq={seq} timeline={timeline} />}
      </div>}
    </>
  );
}

// Status changes with every event, so it is drawn alone.
function Status({ note, timeline, selection }: { note: Signal<string>; timeline: Timeline; selection: Selection | null }) {
  const found = (s: Selection) => `${count(s.total())} found${s.exhausted.value ? '' : ` in the first ${count(s.seen.value)}`}`;
  return <span class="muted" role="status">{note.value || (selection ? found(selection) : `${count(timeline.total())} events${states[timeline.live.value]}`)}</span>;
}

function Detail({ name, seq, timeline }: { name: string; seq: number; timeline: Timeline }) {
  const cached = timeline.seq(seq);
  const loaded = useLoad(cached || timeline.live.value === 'loading' ? '' : `${name}/${seq}`, (signal) => oneEvent(name, seq, signal));
  const event = cached ?? loaded.data.value;
  return (
    <aside class="side" aria-label="Details">
      <button type="button" class="quiet close" onClick={() => set({}, '')} aria-label="Close the details">×</button>
      {event && <EventDetails event={event} />}
      {!event && (loaded.error.value ? <Failure error={loaded.error.value} /> : loaded.loading.value ? <Loading what="the event" /> : <Empty>Event {seq} is not kept, or does not exist yet.</Empty>)}
    </aside>
  );
}
