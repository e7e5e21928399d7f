// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run said and did at an event.
import { useSignal } from '@preact/signals';
import { explain } from '../api/client';
import { useLoad } from '../api/load';
import { recorded, type Call, type Message, type Part } from '../api/recording';
import { href } from '../router';
import { Copy } from './copy';
import { Form } from './form';
import { bytes, count } from './format';
import { Markdown } from './markdown';
import { Text } from './text';

export function Recorded({ task, seq }: { task: string; seq: number }) {
  const { data, error } = useLoad(`${task} ${seq}`, (signal) => recorded(task, seq, signal));
  if (error.value) return <p class="notice">What was said is not shown: <Text>{explain(error.value)}</Text></p>;
  const entry = data.value;
  if (!entry) return null;
  if (entry.toolCall) return <Arguments call={entry.toolCall} />;
  return (
    <>
      {entry.message && <Said part={entry.message} />}
      {entry.conversation && (
        <>
          <h3>What the model was asked</h3>
          <p><a href={href(`/tasks/${encodeURIComponent(task)}`, { tab: 'requests', at: String(seq) })}>As a page, and beside other requests</a></p>
          <Conversation parts={entry.conversation} />
        </>
      )}
      {entry.tools?.tools && <><h3>Tools it was offered</h3><p><Text>{entry.tools.tools.map((t) => t.name).join(', ')}</Text></p></>}
    </>
  );
}

const newest = 20; // messages that are shown at first

// Conversation are messages in their order: of many, the first one and the newest, and those before as somebody asks for them.
export function Conversation({ parts }: { parts: Part[] }) {
  const shown = useSignal(newest);
  const from = Math.max(1, parts.length - shown.value);
  return (
    <>
      {parts.slice(0, 1).map((part, i) => <Turn part={part} key={i} />)}
      {from > 1 && <p class="more"><button type="button" onClick={() => (shown.value += 2 * newest)}>Show earlier messages</button> <span class="muted">{count(from - 1)} are not shown.</span></p>}
      {parts.slice(from).map((part, i) => <Turn part={part} key={from + i} />)}
    </>
  );
}

export function Turn({ part }: { part: Part }) {
  return <section class={`turn ${part.message?.role === 'user' ? 'user' : ''}`} data-step tabIndex={-1}><Said part={part} /></section>;
}

const titles: Record<string, string> = { system: 'Instructions', user: 'Prompt', assistant: 'Answer', tool: 'Result' };

export const titleOf = (p: Part) => (p.message ? (titles[p.message.role] ?? p.message.role) : 'Message');

function Said({ part }: { part: Part }) {
  const title = titleOf(part);
  if (part.omitted) return <><h3><Text>{title}</Text></h3><p class="notice">{absent(part)}</p></>;
  return part.message ? <Body message={part.message} title={title} /> : null;
}

function Body({ message: m, title }: { message: Message; title: string }) {
  return (
    <>
      <h3><Text>{title}</Text>{m.failed && ', failed'}</h3>
      {m.thinking && <details><summary class="muted">What it thought</summary><Form text={m.thinking} label="What the model thought" /></details>}
      {m.text && (m.role === 'assistant' ? <div class="form plain"><div class="over"><Copy text={m.text} label={title} /></div><Markdown text={m.text} /></div> : <Form text={m.text} label={title} />)}
      {m.images?.map((image, i) => <p class="muted" key={i}>An image, <Text>{image.mediaType}</Text>, {bytes(image.bytes ?? 0)}, is not kept.</p>)}
      {m.toolCalls?.map((c) => <Arguments call={c} key={c.id} />)}
    </>
  );
}

function Arguments({ call }: { call: Call }) {
  return (
    <>
      <h3>Call of <Text>{call.name}</Text></h3>
      {call.arguments && <Form text={call.arguments} label={`Arguments of ${call.name}`} />}
    </>
  );
}

export function absent(p: Part): string {
  const size = p.bytes ? ` (${bytes(p.bytes)})` : '';
  switch (p.omitted) {
    case 'DigestsOnly':
      return `Only its digest is kept${size}: SHA-256 ${(p.digest ?? '').slice(0, 12)}.`;
    case 'TooLarge':
      return `It was too large to be kept${size}.`;
    case 'LimitReached':
      return `The task had no room left for it${size}.`;
    default:
      return 'It did not arrive.';
  }
}
