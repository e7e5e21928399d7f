// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What was said and done, in order, a page at a time.
import { useSignal } from '@preact/signals';
import { get, inNamespace } from '../../api/client';
import { useLoad } from '../../api/load';
import { nearest } from '../../api/selection';
import type { Event, EventPage, Task } from '../../api/types';
import { href, location, set } from '../../router';
import { failed, failures } from '../../ui/kinds';
import { Markdown } from '../../ui/markdown';
import { ended } from '../../ui/phase';
import { Empty, Failure, Loading, Notice } from '../../ui/states';
import { useSteps } from '../../ui/steps';
import { Text, oneLine } from '../../ui/text';

const types = ['ModelMessage', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed', 'TaskMessageReceived', 'PlanUpdated', 'ApprovalRequested', 'ApprovalApproved', 'ApprovalDeclined', 'WorkerFailed'];
const size = 60;
const again = 2000; // ms between two looks at the last page of a task that goes on

export function RunTranscript({ name, task }: { name: string; task: Task | undefined }) {
  const query = location.value.query;
  const [after, before] = ['after', 'before'].map((key) => Math.max(0, Math.floor(Number(query.get(key)) || 0))) as [number, number];
  const last = useSignal(false); // what comes next belongs to this page
  const at = `${name}/${after}/${before}`;
  const page = useLoad(`${at}/${task?.status?.phase}`, async (signal) => {
    const q = new URLSearchParams({ ...(before ? { before: String(before) } : { after: String(after) }), limit: String(size) });
    for (const t of types) q.append('type', t);
    const p = await get<EventPage>(`${inNamespace('tasks', name, 'events')}?${q}`, signal);
    if (!signal.aborted) last.value = !before && p.events.length < size;
    return p.events.sort((a, b) => a.seq - b.seq);
  }, last.value && task && !ended(task.status?.phase) ? again : 0, at);
  // A failure that is on no page that is shown is looked for, and its page begins with it.
  const box = useSteps<HTMLDivElement>('step', (forward) => void (async () => {
    const events = page.data.peek() ?? [];
    const at = document.activeElement?.closest<HTMLElement>('[data-step]')?.dataset.step;
    const edge = forward ? events.at(-1)?.seq ?? after : (events[0]?.seq ?? after + 1);
    const n = await nearest(name, failures, Number(at) || edge, forward).catch(() => undefined);
    if (n) set({ before: '', after: n > 1 ? String(n - 1) : '' });
  })());
  const events = page.data.value;
  if (!events && page.error.value) return <Failure error={page.error.value} retry={page.reload} />;
  if (!events) return <Loading what="the transcript" />;
  const full = events.length === size;
  const begins = before ? !full : after === 0;
  const prompt = task?.spec.prompt ?? task?.spec.ai?.prompt;
  const session = task?.spec.sessionRef?.name;
  return (
    <div ref={box} class="transcript">
      <Notice error={page.error.value} />
      {session && <p>This task is part of the session <a href={href(`/sessions/${encodeURIComponent(session)}`)}>{session}</a>.</p>}
      {begins && prompt && <div class="turn user"><h2>Prompt</h2><Markdown text={prompt} /></div>}
      {events.map((e) => <Turn key={e.seq} event={e} />)}
      {events.length === 0 && <Empty>{begins ? 'Nothing was said yet.' : 'Nothing was said after this.'}</Empty>}
      <p class="more">
        {!begins && <button type="button" onClick={() => set({ after: '', before: String(events[0]?.seq ?? after + 1) })}>Earlier</button>}{' '}
        {(before > 0 || full) && <button type="button" onClick={() => set({ before: '', after: String(events.at(-1)?.seq ?? before) })}>Later</button>}
      </p>
    </div>
  );
}

function Turn({ event }: { event: Event }) {
  const link = <a class="small" href={href(window.location.pathname.slice('/console'.length), {}, `seq=${event.seq}`)}>#{event.seq}</a>;
  const bad = failed(event) ? 'bad' : '';
  if (event.type === 'ModelMessage' || event.type === 'TaskMessageReceived' || event.type === 'PlanUpdated') {
    const who = event.type === 'ModelMessage' ? event.agentName || 'Model' : event.type === 'PlanUpdated' ? 'Plan' : 'Message from another task';
    return <div class="turn" data-step={event.seq} tabIndex={-1}><h2><Text>{who}</Text> {link}</h2><Markdown text={event.contentText ?? event.summary ?? ''} /></div>;
  }
  return (
    <p class={`step ${bad}`} data-step={event.seq} tabIndex={-1}>
      <span><bdi>{oneLine(event.summary || event.type)}</bdi></span> {link}
    </p>
  );
}
