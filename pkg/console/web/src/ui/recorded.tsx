// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run said and did at an event.
import { explain } from '../api/client';
import { useLoad } from '../api/load';
import { recorded, type Call, type Message, type Part } from '../api/recording';
import { bytes } from './format';
import { Long } from './long';
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
          {entry.conversation.map((part, i) => <section class="turn" key={i}><Said part={part} /></section>)}
        </>
      )}
      {entry.tools?.tools && <><h3>Tools it was offered</h3><p><Text>{entry.tools.tools.map((t) => t.name).join(', ')}</Text></p></>}
    </>
  );
}

const titles: Record<string, string> = { system: 'Instructions', user: 'Prompt', assistant: 'Answer', tool: 'Result' };

function Said({ part }: { part: Part }) {
  const m = part.message;
  const title = m ? (titles[m.role] ?? m.role) : 'Message';
  return (
    <>
      <h3><Text>{title}</Text></h3>
      {part.omitted ? <p class="notice">{absent(part)}</p> : m && <Body message={m} title={title} />}
    </>
  );
}

function Body({ message: m, title }: { message: Message; title: string }) {
  return (
    <>
      {m.text && (m.role === 'assistant' ? <Markdown text={m.text} /> : <Long text={readable(m.text)} label={title} />)}
      {m.images?.map((image, i) => <p class="muted" key={i}>An image, <Text>{image.mediaType}</Text>, {bytes(image.bytes ?? 0)}, is not kept.</p>)}
      {m.toolCalls?.map((c) => <Arguments call={c} key={c.id} />)}
    </>
  );
}

function Arguments({ call }: { call: Call }) {
  return (
    <>
      <h3>Call of <Text>{call.name}</Text></h3>
      {call.arguments && <Long text={readable(call.arguments)} label={`Arguments of ${call.name}`} />}
    </>
  );
}

// readable returns JSON as members in lines, in which the lines of a text are lines; any other text as it is.
function readable(text: string): string {
  const start = text.trimStart();
  if (!start.startsWith('{') && !start.startsWith('[')) return text;
  try {
    return lines(JSON.parse(text), '').trimStart();
  } catch {
    return text;
  }
}

// lines are the members of a value, indented. Numbers beyond the exact ones are shown as the browser reads them.
function lines(v: unknown, indent: string): string {
  if (Array.isArray(v)) return v.length === 0 ? ' []' : v.map((x) => `\n${indent}-${lines(x, `${indent}  `)}`).join('');
  if (v !== null && typeof v === 'object') {
    const members = Object.entries(v);
    return members.length === 0 ? ' {}' : members.map(([k, x]) => `\n${indent}${k}:${lines(x, `${indent}  `)}`).join('');
  }
  if (typeof v === 'string' && v.includes('\n')) return `\n${v.replace(/\n$/, '').split('\n').map((l) => indent + l).join('\n')}`;
  return ` ${typeof v === 'string' ? v : JSON.stringify(v)}`;
}

function absent(p: Part): string {
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
