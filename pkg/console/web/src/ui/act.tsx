// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons for subresources that the viewer may use.
import { useSignal } from '@preact/signals';
import { apiVersion, explain, inNamespace, post } from '../api/client';
import { may } from '../api/may';
import { useKeys } from '../keys';
import { Question } from './question';

export interface Action {
  title: string;
  sub: string; // the subresource
  kind: string; // of the body
  body?: Record<string, unknown>; // its fields
  primary?: boolean;
  key?: 'y' | 'n';
  disabled?: boolean;
  asks?: string | undefined; // what is asked before it is done
  done?: string; // what is said when it was done, unless it can be seen
}

// useChoice lets y and n choose between the actions of the part that has the focus. Enter on the button confirms.
export function useChoice(yes: string, no: string): void {
  const choose = (key: string) => {
    const button = document.activeElement?.closest('[data-step]')?.querySelector<HTMLButtonElement>(`button[data-choice=${key}]`);
    button?.focus();
    return button ? undefined : false;
  };
  useKeys([
    { key: 'y', label: `${yes}; Enter confirms`, run: () => choose('y') },
    { key: 'n', label: `${no}; Enter confirms`, run: () => choose('n') },
  ]);
}

export function Act({ resource, name, actions }: { resource: string; name: string; actions: Action[] }) {
  const busy = useSignal(false);
  const asked = useSignal<Action | null>(null);
  const done = useSignal('');
  const problem = useSignal('');
  const offered = actions.filter((a) => may('create', `${resource}/${a.sub}`));
  const run = async (a: Action) => {
    busy.value = true;
    asked.value = null;
    done.value = problem.value = '';
    try {
      await post(inNamespace(resource, name, a.sub), { apiVersion, kind: a.kind, ...a.body });
      done.value = a.done ?? '';
    } catch (e) {
      problem.value = explain(e);
    }
    busy.value = false;
  };
  if (offered.length === 0) return null;
  const question = asked.value;
  return (
    <>
      {question
        ? <Question text={question.asks ?? ''} verb={question.title} go={() => void run(question)} close={() => (asked.value = null)} />
        : (
          <div class="tools">
            {offered.map((a) => <button key={a.sub + a.title} type="button" data-choice={a.key} class={a.primary ? 'primary' : ''} disabled={busy.value || a.disabled} onClick={() => (a.asks ? (asked.value = a) : void run(a))}>{a.title}</button>)}
          </div>
        )}
      {done.value && <p class="muted" role="status">{done.value}</p>}
      {problem.value && <p class="notice bad" role="alert">{problem.value}</p>}
    </>
  );
}
