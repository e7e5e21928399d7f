// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Everything about one event.
import { useSignal } from '@preact/signals';
import { may } from '../api/may';
import { recordedTypes } from '../api/recording';
import type { Event } from '../api/types';
import { useKeys } from '../keys';
import { ForkForm } from './forkform';
import { clock, count, words } from './format';
import { Long } from './long';
import { Markdown } from './markdown';
import { Recorded } from './recorded';
import { Text } from './text';

export function EventDetails({ event }: { event: Event }) {
  const prose = event.type === 'ModelMessage' || event.type === 'PlanUpdated' || event.type === 'TaskMessageReceived';
  return (
    <article class="details" aria-label={`Event ${event.seq}`}>
      <h2>{words(event.type)} <a class="small" href={`#seq=${event.seq}`} title="The address of this event">#{event.seq}</a></h2>
      {event.summary && !(prose && event.contentText) && <p><Text>{event.summary}</Text></p>}
      <dl class="facts">
        <Fact name="Time" value={clock(event.createdAt)} />
        <Fact name="Severity" value={event.severity && event.severity !== 'info' ? event.severity : ''} />
        <Fact name="Agent" value={event.agentName} />
        <Fact name="Tool" value={event.toolName} />
        <Fact name="Call" value={event.toolCallID} />
        <Fact name="Model" value={[event.provider, event.model].filter(Boolean).join(' / ')} />
        <Fact name="Tokens in" value={event.inputTokens === undefined ? '' : count(event.inputTokens)} />
        <Fact name="Tokens out" value={event.outputTokens === undefined ? '' : count(event.outputTokens)} />
      </dl>
      {event.taskName && recordedTypes.includes(event.type) && may('get', 'tasks/recording') && <Recorded task={event.taskName} seq={event.taskSeq ?? event.seq} />}
      {event.contentText && <><h3>Text</h3>{prose ? <Markdown text={event.contentText} /> : <Long text={event.contentText} label="Text" />}</>}
      {event.content && Object.keys(event.content).length > 0 && <><h3>Content</h3><Long text={JSON.stringify(event.content, null, 2)} label="Content" /></>}
      {event.truncation && <p class="notice">The server shortened this event: it was longer than an event may be.</p>}
      {event.taskName && may('create', 'tasks/fork') && <Fork key={event.seq} task={event.taskName} after={event.seq} />}
    </article>
  );
}

function Fork({ task, after }: { task: string; after: number }) {
  const open = useSignal(false);
  useKeys([{ key: 'f', label: 'Fork the run after this event', run: () => (open.value = true) }]);
  if (open.value) return <ForkForm task={task} after={after} close={() => (open.value = false)} />;
  return <p class="actions"><button type="button" onClick={() => (open.value = true)}>Fork from here <kbd>f</kbd></button></p>;
}

export function Fact({ name, value }: { name: string; value: string | undefined }) {
  if (!value) return null;
  return <div><dt>{name}</dt><dd><Text>{value}</Text></dd></div>;
}
