// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Buttons for subresources that the viewer may use.
import { useSignal } from '@preact/signals';
import { apiVersion, explain, inNamespace, post } from '../../api/client';
import { may } from '../../api/may';

export interface Action {
  title: string;
  sub: string; // the subresource
  kind?: string; // of the body; MemoryChange by default
  spec?: Record<string, unknown>;
  primary?: boolean;
}

export function Act({ resource, name, actions }: { resource: string; name: string; actions: Action[] }) {
  const busy = useSignal(false);
  const problem = useSignal('');
  const offered = actions.filter((a) => may('create', `${resource}/${a.sub}`));
  const run = async (a: Action) => {
    busy.value = true;
    problem.value = '';
    try {
      await post(inNamespace(resource, name, a.sub), { apiVersion, kind: a.kind ?? 'MemoryChange', ...(a.spec ? { spec: a.spec } : {}) });
    } catch (e) {
      problem.value = explain(e);
    }
    busy.value = false;
  };
  if (offered.length === 0) return null;
  return (
    <>
      <div class="tools">
        {offered.map((a) => <button key={a.sub + a.title} type="button" class={a.primary ? 'primary' : ''} disabled={busy.value} onClick={() => void run(a)}>{a.title}</button>)}
      </div>
      {problem.value && <p class="notice bad" role="alert">{problem.value}</p>}
    </>
  );
}
