// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What was said and done, in order, a page at a time.
import { useSignal } from '@preact/signals';
import { get, inNamespace } from '../../api/client';
import { useLoad } from '../../api/load';
import type { Event, EventPage, Task } from '../../api/types';
import { href } from '../../router';
import { failed } from '../../ui/kinds';
import { Markdown } from '../../ui/markdown';
import { Empty, Failure, Loading } from '../../ui/states';
import { Text, oneLine } from '../../ui/text';

const types = ['ModelMessage', 'ToolCallStarted', 'ToolCallCompleted', 'ToolCallFailed', 'TaskMessageReceived', 'PlanUpdated', 'ApprovalRequested', 'ApprovalApproved', 'ApprovalDeclined', 'WorkerFailed'];
const size = 60;

export function RunTranscript({ name, task }: { name: string; task: Task | undefined }) {
  const starts = useSignal([0]); // the positions of the pages up to this one
  const after = starts.value.at(-1) ?? 0;
  const page = useLoad(`${name}/${after}/${task?.status?.phase}`, (signal) => {
    const q = new URLSearchParams({ after: String(after), limit: String(size) });
    for (const t of types) q.append('type', t);
    return get<EventPage>(`${inNamespace('tasks', name, 'events')}?${q}`, signal);
  });
  const p = page.data.value;
  if (page.error.value) return <Failure error={page.error.value} retry={page.reload} />;
  if (!p) return <Loading what="the transcript" />;
  const last = p.events.at(-1)?.seq ?? after;
  const prompt = task?.spec.prompt ?? task?.spec.ai?.prompt;
  const session = task?.spec.sessionRef?.name;
  return (
    <div class="transcript">
      {session && <p>This task is part of the session <a href={href(`/sessions/${encodeURIComponent(session)}`)}>{session}</a>.</p>}
      {after === 0 && prompt && <div class="turn user"><h2>Prompt</h2><Markdown text={prompt} /></div>}
      {p.events.map((e) => <Turn key={e.seq} event={e} />)}
      {p.events.length === 0 && after === 0 && <Empty>Nothing was said yet.</Empty>}
      <p class="more">
        {after > 0 && <button type="button" onClick={() => (starts.value = starts.value.slice(0, -1))}>Earlier</button>}{' '}
        {p.events.length === size && <button type="button" onClick={() => (starts.value = [...starts.value, last])}>Later</button>}
      </p>
    </div>
  );
}

function Turn({ event }: { event: Event }) {
  const link = <a class="small" href={href(window.location.pathname.slice('/console'.length), {}, `seq=${event.seq}`)}>#{event.seq}</a>;
  if (event.type === 'ModelMessage' || event.type === 'TaskMessageReceived' || event.type === 'PlanUpdated') {
    const who = event.type === 'ModelMessage' ? event.agentName || 'Model' : event.type === 'PlanUpdated' ? 'Plan' : 'Message from another task';
    return <div class="turn"><h2><Text>{who}</Text> {link}</h2><Markdown text={event.contentText ?? event.summary ?? ''} /></div>;
  }
  return (
    <p class={`step ${failed(event) ? 'bad' : ''}`}>
      <span><bdi>{oneLine(event.summary || event.type)}</bdi></span> {link}
    </p>
  );
}
