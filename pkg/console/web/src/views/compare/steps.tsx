// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The steps of two runs in two columns.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { may } from '../../api/may';
import type { Pair } from '../../api/compare';
import type { Event } from '../../api/types';
import { location, set, taskHref } from '../../router';
import { ForkForm } from '../../ui/forkform';
import { words } from '../../ui/format';
import { failed } from '../../ui/kinds';
import { Markdown } from '../../ui/markdown';
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
  going: [boolean, boolean]; // whether each run may do more
}

export function Steps({ a, b, pairs, first, skip, going }: Props) {
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
  return (
    <>
      <div ref={box} class="columns">
        {rows.map((p, i) => (
          <div key={skip + i} id={skip + i === first ? 'difference' : undefined} class={`pair ${p.same ? '' : 'differs'} ${bad(p) ? 'bad' : ''}`} data-step={skip + i} tabIndex={-1}>
            {skip + i === first && <p class="mark">First difference</p>}
            <Step task={a} event={p.a} ended={skip + i > 0 && !pairs[skip + i - 1]?.a} going={going[0]} />
            <Step task={b} event={p.b} ended={skip + i > 0 && !pairs[skip + i - 1]?.b} going={going[1]} />
          </div>
        ))}
      </div>
      {pairs.length > skip + shown && <p class="more"><button type="button" onClick={() => show(shown + batch)}>Show more</button></p>}
    </>
  );
}

// ended is set after the row that says that a run has no more steps.
function Step({ task, event, ended, going }: { task: string; event: Event | undefined; ended: boolean; going: boolean }) {
  const forking = useSignal(false);
  if (!event && ended) return <div />;
  if (!event) return <div class="turn none muted">{going ? 'Nothing more yet' : 'Nothing more'}</div>;
  return (
    <div class={`turn ${failed(event) ? 'failed' : ''}`}>
      <h2>
        {words(event.type)} {event.toolName && <Text>{event.toolName}</Text>} <a href={taskHref(task, event.seq)}>#{event.seq}</a>
        {may('create', 'tasks/fork') && <button type="button" class="quiet small" aria-expanded={forking.value} onClick={() => (forking.value = !forking.value)}>Fork from here</button>}
      </h2>
      {event.contentText ? <Markdown text={event.contentText} /> : <p><Text>{event.summary}</Text></p>}
      {forking.value && <ForkForm task={task} after={event.seq} close={() => (forking.value = false)} />}
    </div>
  );
}
