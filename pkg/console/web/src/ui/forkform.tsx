// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// A form that forks a run at one of its events, and then compares the fork with its source.
import { useSignal } from '@preact/signals';
import { apiVersion, explain, inNamespace, post } from '../api/client';
import { go, href } from '../router';

export function ForkForm({ task, after, close }: { task: string; after: number; close: () => void }) {
  const busy = useSignal(false);
  const problem = useSignal('');
  const key = useSignal(crypto.randomUUID()); // a request that is sent again makes no second fork
  const submit = async (e: SubmitEvent) => {
    e.preventDefault();
    const f = new FormData(e.currentTarget as HTMLFormElement);
    const prompt = String(f.get('prompt') ?? '').trim();
    const name = String(f.get('name') ?? '').trim();
    busy.value = true;
    problem.value = '';
    try {
      const spec = { afterSeq: after, ...(prompt ? { prompt } : {}), ...(name ? { newTaskName: name } : { idempotencyKey: key.value }) };
      const made = await post<{ status: { newTaskName: string } }>(inNamespace('tasks', task, 'fork'), { apiVersion, kind: 'TaskFork', spec });
      go(href('/compare', { a: task, b: made.status.newTaskName }));
    } catch (err) {
      problem.value = explain(err);
      busy.value = false;
    }
  };
  return (
    <form class="fork" onSubmit={(e) => void submit(e)}>
      <label>Prompt <textarea name="prompt" rows={2} placeholder="That of the source" /></label>
      <label>Name <input name="name" placeholder="A generated one" maxLength={253} spellcheck={false} autocomplete="off" /></label>
      {problem.value && <p class="notice bad" role="alert">{problem.value}</p>}
      <div class="tools">
        <button type="submit" class="primary" disabled={busy.value}>Fork after event {after}</button>
        <button type="button" onClick={close}>Close</button>
      </div>
    </form>
  );
}
