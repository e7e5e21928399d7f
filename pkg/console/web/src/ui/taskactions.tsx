// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons for what the viewer may do with tasks. A capital letter chooses a button, and Enter confirms. What ends or removes tasks is
// asked about once more, with their number.
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { explain } from '../api/client';
import { offered, type Action } from '../api/taskactions';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { taskHref } from '../router';
import { count } from './format';
import { Question } from './question';
import { Text } from './text';

const atOnce = 4; // requests
const mostLines = 20; // of tasks that were made

interface Outcome {
  done: string;
  good: number;
  made: string[];
  failed: Array<[task: string, message: string]>;
}

interface Asked {
  action: Action;
  tasks: Task[];
}

const many = (n: number) => `${count(n)} ${n === 1 ? 'task' : 'tasks'}`;

// question returns what is asked about before tasks are ended or removed.
function question({ action, tasks }: Asked) {
  const n = many(tasks.length);
  return { text: action.asks?.(n) ?? '', verb: `${action.title(tasks)} ${n}`, reason: action.reason };
}

interface Props {
  tasks: Task[];
  several?: boolean; // whether buttons say of how many tasks they are
  done?: (action: Action, good: string[]) => void; // with the UIDs of the tasks with which it was done
}

export function TaskActions({ tasks, several, done }: Props) {
  const asked = useSignal<Asked | null>(null);
  const going = useSignal('');
  const outcome = useSignal<Outcome | null>(null);
  const bar = useRef<HTMLDivElement>(null);
  const some = offered(tasks);

  const run = async (action: Action, on: Task[], reason = '') => {
    if (going.value) return;
    asked.value = null;
    const o: Outcome = { done: action.done, good: 0, made: [], failed: [] };
    const good: string[] = [];
    const left = [...on];
    const next = async () => {
      for (let t; (t = left.shift()); ) {
        going.value = on.length > 1 ? `${count(on.length - left.length)} of ${count(on.length)} …` : '…';
        try {
          const made = await action.act(t, reason);
          o.good++;
          good.push(t.metadata.uid ?? '');
          if (made) o.made.push(made);
        } catch (e) {
          o.failed.push([t.metadata.name, explain(e)]);
        }
      }
    };
    await Promise.all(Array.from({ length: atOnce }, next));
    going.value = '';
    outcome.value = o;
    done?.(action, good);
  };
  const choose = (action: Action, on: Task[]) => {
    outcome.value = null;
    if (action.asks) asked.value = { action, tasks: on };
    else void run(action, on);
  };
  const focus = (key: string) => {
    const button = bar.current?.querySelector<HTMLButtonElement>(`button[data-key=${key}]`);
    button?.focus();
    return button ? undefined : false;
  };
  useKeys(some.map(({ action, tasks: on }) => ({ key: action.key, label: `${action.title(on)}; Enter confirms`, run: () => focus(action.key) })));
  return (
    <div ref={bar} class="acts">
      {asked.value
        ? <Question {...question(asked.value)} close={() => (asked.value = null)} go={(reason) => asked.value && void run(asked.value.action, asked.value.tasks, reason)} />
        : some.length > 0 && (
          <div class="tools">
            {some.map(({ action, tasks: on }) => (
              <button key={action.id} type="button" data-key={action.key} title={`Key: ${action.key}`} disabled={going.value !== ''} onClick={() => choose(action, on)}>
                {action.title(on)}{several && ` ${count(on.length)}`}
              </button>
            ))}
          </div>
        )}
      <div role="status" class="outcome">
        {going.value && <p class="muted">{going.value}</p>}
        {outcome.value && <Said outcome={outcome.value} close={() => (outcome.value = null)} />}
      </div>
    </div>
  );
}

function Said({ outcome, close }: { outcome: Outcome; close: () => void }) {
  const { done, good, made, failed } = outcome;
  return (
    <>
      {good > 0 && (
        <p>
          {many(good)} {good === 1 ? 'was' : 'were'} {done}{made.length > 0 && <>: {made.slice(0, mostLines).map((name, i) => <span key={name}>{i > 0 && ', '}<a href={taskHref(name)}><Text>{name}</Text></a></span>)}{made.length > mostLines && ' …'}</>}.{' '}
          {failed.length === 0 && <Hide close={close} />}
        </p>
      )}
      {failed.length > 0 && (
        <>
          <p class="notice bad">{many(failed.length)} {failed.length === 1 ? 'was' : 'were'} not {done}. <Hide close={close} /></p>
          <ul class="failures">{failed.map(([task, message]) => <li key={task}><a href={taskHref(task)}><Text>{task}</Text></a>: <Text>{message}</Text></li>)}</ul>
        </>
      )}
    </>
  );
}

function Hide({ close }: { close: () => void }) {
  return <button type="button" class="quiet" onClick={close} aria-label="Close what was said">×</button>;
}
