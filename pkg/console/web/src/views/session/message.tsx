// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Messages of a conversation, and the answer that is being given.
import { explain } from '../../api/client';
import type { Message } from '../../api/kinds';
import type { Call, Conversation } from '../../api/transcript';
import { taskHref } from '../../router';
import { clock } from '../../ui/format';
import { Long } from '../../ui/long';
import { Markdown } from '../../ui/markdown';
import { Text, oneLine } from '../../ui/text';

const names = { user: 'User', assistant: 'Model', system: 'Instructions', tool: 'Tool' };

export function Said({ message }: { message: Message }) {
  const { role, content, toolCalls, ts } = message;
  const task = message.sourceType === 'task' ? message.sourceRef : undefined;
  if (role === 'tool') return <Folded title={`${message.name ?? 'The tool'} answered`} text={content ?? ''} />;
  return (
    <>
      {(content || !toolCalls) && (
        <div class={`turn ${role}`} data-step tabIndex={-1}>
          <h2>
            {names[role]} {task && <a href={taskHref(task)}><Text>{task}</Text></a>} {ts && <time dateTime={ts}>{clock(ts)}</time>}
          </h2>
          <Markdown text={content ?? ''} />
        </div>
      )}
      {toolCalls?.map((c) => <Folded key={c.id} title={`Calls ${c.name}`} text={c.arguments ?? ''} />)}
    </>
  );
}

// Answer shows the present turn as it is streamed, and why it ended otherwise than with an answer.
export function Answer({ talk }: { talk: Conversation }) {
  const { question, steps, busy, problem } = talk;
  return (
    <div aria-live="polite" aria-busy={busy.value}>
      {question.value && <div class="turn user" data-step tabIndex={-1}><h2>User</h2><Markdown text={question.value} /></div>}
      {steps.value.map((s, i) => ('text' in s ? <div key={i} class="turn" data-step tabIndex={-1}><h2>Model</h2><Markdown text={s.text} /></div> : <CallStep key={i} call={s.call} />))}
      {busy.value && <p class="step" role="status">The model is at work …</p>}
      {problem.value !== null && <p class="notice bad" role="alert">{explain(problem.value)}</p>}
    </div>
  );
}

function CallStep({ call }: { call: Call }) {
  const failed = call.done && (call.result as { success?: boolean } | undefined)?.success === false;
  const text = JSON.stringify({ args: call.args, ...(call.done ? { result: call.result } : {}) }, null, 2);
  return <Folded title={`${call.done ? (failed ? 'Failed: ' : 'Called ') : 'Calls '}${call.name}`} text={text} bad={failed} />;
}

// Folded is a line that shows its text when it is opened.
function Folded({ title, text, bad = false }: { title: string; text: string; bad?: boolean }) {
  return (
    <details class={`step ${bad ? 'bad' : ''}`}>
      <summary data-step><bdi>{oneLine(title, 120)}</bdi> <span class="muted"><bdi>{oneLine(text, 160)}</bdi></span></summary>
      <Long text={text} label={title} />
    </details>
  );
}
