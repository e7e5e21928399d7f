// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The steps of two runs in two columns, and what differs in each two.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { may } from '../../api/may';
import type { Pair } from '../../api/compare';
import type { Contents } from '../../api/contents';
import type { Event } from '../../api/types';
import { location, set, taskHref } from '../../router';
import { ForkForm } from '../../ui/forkform';
import { Form } from '../../ui/form';
import { words } from '../../ui/format';
import { failed } from '../../ui/kinds';
import { Markdown } from '../../ui/markdown';
import { Difference, shared } from '../../ui/patch';
import { useSteps } from '../../ui/steps';
import { Text } from '../../ui/text';

const batch = 100; // rows that are added at a time

const bad = (p: Pair) => [p.a, p.b].some((e) => e !== undefined && failed(e));

interface Props {
  a: string;
  b: string;
  pairs: Pair[];
  first: number; // the first difference; -1 if there is none
  skip: number; // how many rows are folded
  said: [Contents, Contents] | undefined; // what is recorded
  going: [boolean, boolean]; // whether each run may do more
}

export function Steps({ a, b, pairs, first, skip, said, going }: Props) {
  const shown = Math.max(batch, Math.floor(Number(location.value.query.get('rows')) || 0));
  const wanted = useRef(-1); // the row that gets the focus when it is there
  const show = (rows: number) => set({ rows: String(rows) });
  // A failure that is not among the rows that are shown is looked for in those that follow.
  const box = useSteps<HTMLDivElement>('step', (forward) => {
    const at = forward ? pairs.findIndex((p, i) => i >= skip + shown && bad(p)) : -1;
    if (at < 0) return;
    wanted.current = at;
    show(at - skip + batch);
  });
  useEffect(() => {
    if (wanted.current >= 0) box.current?.querySelector<HTMLElement>(`[data-step="${wanted.current}"]`)?.focus();
    wanted.current = -1;
  }, [shown]);
  const rows = pairs.slice(skip, skip + shown);
  const ends = [pairs.findLastIndex((p) => p.a), pairs.findLastIndex((p) => p.b)] as const;
  return (
    <>
      <div ref={box} class="columns">
        {rows.map((p, i) => (
          <div key={skip + i} id={skip + i === first ? 'difference' : undefined} class={`pair ${p.same ? '' : 'differs'} ${bad(p) ? 'bad' : ''}`} data-step={skip + i} tabIndex={-1}>
            {skip + i === first && <p class="mark">First difference</p>}
            <Two pair={p} tasks={[a, b]} said={said} left={[ends[0] - skip - i, ends[1] - skip - i]} going={going} />
          </div>
        ))}
      </div>
      {pairs.length > skip + shown && <p class="more"><button type="button" onClick={() => show(shown + batch)}>Show more</button></p>}
    </>
  );
}

interface TwoProps {
  pair: Pair;
  tasks: [string, string];
  said: [Contents, Contents] | undefined;
  left: [number, number]; // how many rows on each run has its last step
  going: [boolean, boolean];
}

// Two are the steps of a row. What differs in both is shown once, below them.
function Two({ pair: { a, b, same }, tasks, said, left, going }: TwoProps) {
  const text = (e: Event | undefined, side: 0 | 1) => e && (e.contentText ?? said?.[side].texts.get(e.seq));
  const [ta, tb] = [text(a, 0), text(b, 1)];
  const differ = !same && ta !== undefined && tb !== undefined && ta !== tb && (!a?.contentText || shared(ta, tb) > 0.25);
  const side = (e: Event | undefined, i: 0 | 1) => (
    <Step task={tasks[i]} event={e} left={left[i]} going={going[i]}>{!differ && e && !e.contentText && said && <Said event={e} text={said[i].texts.get(e.seq)} />}</Step>
  );
  return (
    <>
      {differ ? <Step task={tasks[0]} event={a} left={left[0]} going={going[0]} brief /> : side(a, 0)}
      {differ ? <Step task={tasks[1]} event={b} left={left[1]} going={going[1]} brief /> : side(b, 1)}
      {differ && <div class="between"><Difference a={ta} b={tb} label={`What differs in the ${partOf(a)}`} /></div>}
    </>
  );
}

const partOf = (e: Event | undefined) => (e?.type === 'ToolCallStarted' ? 'arguments' : e?.contentText ? 'text' : 'result');

// Said is what is recorded of a call, as somebody asks for it.
function Said({ event, text }: { event: Event; text: string | undefined }) {
  const open = useSignal(false);
  if (!event.type.startsWith('ToolCall') || event.type === 'ToolCallJudged') return null;
  if (text === undefined) return <p class="muted small">Its {partOf(event)} {event.type === 'ToolCallStarted' ? 'are' : 'is'} not recorded.</p>;
  return (
    <details onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary class="muted">{event.type === 'ToolCallStarted' ? 'Arguments' : 'Result'}</summary>
      {open.value && <Form text={text} label={`${partOf(event)} of ${event.toolName ?? 'the call'}`} />}
    </details>
  );
}

interface StepProps {
  task: string;
  event: Event | undefined;
  left: number;
  going: boolean;
  brief?: boolean; // without its text
  children?: ComponentChildren;
}

function Step({ task, event, left, going, brief, children }: StepProps) {
  const forking = useSignal(false);
  if (!event && left < -1) return <div />;
  if (!event) return <div class="turn none muted">{left > 0 ? 'Nothing alike' : going ? 'Nothing more yet' : 'Nothing more'}</div>;
  return (
    <div class={`turn ${failed(event) ? 'failed' : ''}`}>
      <h2>
        {words(event.type)} {event.toolName && <Text>{event.toolName}</Text>} <a href={taskHref(task, event.seq)}>#{event.seq}</a>
        {may('create', 'tasks/fork') && <button type="button" class="quiet small" aria-expanded={forking.value} onClick={() => (forking.value = !forking.value)}>Fork from here</button>}
      </h2>
      {!brief && (event.contentText ? <Markdown text={event.contentText} /> : <p><Text>{event.summary}</Text></p>)}
      {children}
      {forking.value && <ForkForm task={task} after={event.seq} close={() => (forking.value = false)} />}
    </div>
  );
}
