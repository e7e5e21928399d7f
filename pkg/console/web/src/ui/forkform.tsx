// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A form that forks a run at one of its events, and then compares the fork with its source.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { chance } from '../api/chance';
import { apiVersion, explain, inNamespace, post } from '../api/client';
import { go, href } from '../router';

export function ForkForm({ task, after, close }: { task: string; after: number; close: () => void }) {
  const busy = useSignal(false);
  const problem = useSignal('');
  const prompt = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => prompt.current?.focus(), []);
  const key = useSignal(chance(16)); // a request that is sent again makes no second fork
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    if (busy.value) return;
    const f = new FormData(e.currentTarget as HTMLFormElement);
    const text = String(f.get('prompt') ?? '').trim();
    const name = String(f.get('name') ?? '').trim();
    busy.value = true;
    problem.value = '';
    try {
      const spec = { afterSeq: after, ...(text ? { prompt: text } : {}), ...(name ? { newTaskName: name } : { idempotencyKey: key.value }) };
      const made = await post<{ status: { newTaskName: string } }>(inNamespace('tasks', task, 'fork'), { apiVersion, kind: 'TaskFork', spec });
      go(href('/compare', { a: task, b: made.status.newTaskName }));
    } catch (err) {
      problem.value = explain(err);
      busy.value = false;
    }
  };
  return (
    <form class="fork" onSubmit={(e) => void submit(e)} onKeyDown={(e) => e.key === 'Escape' && (e.stopPropagation(), close())}>
      <label>Prompt <textarea ref={prompt} name="prompt" rows={2} placeholder="That of the source" onKeyDown={enter} /></label>
      <label>Name <input name="name" placeholder="A generated one" maxLength={253} spellcheck={false} autocomplete="off" /></label>
      {problem.value && <p class="notice bad" role="alert">{problem.value}</p>}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy.value}>Fork after event {after} <kbd>Enter</kbd></button>
        <button type="button" onClick={close}>Close <kbd>Esc</kbd></button>
      </div>
    </form>
  );
}

// enter sends the form, as in the other fields for a text; with Shift it begins a line.
function enter(e: KeyboardEvent & { currentTarget: HTMLTextAreaElement }): void {
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  e.currentTarget.form?.requestSubmit();
}
