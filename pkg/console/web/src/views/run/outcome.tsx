// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run left: its result, artifacts and log, and the object itself.
import { useSignal } from '@preact/signals';
import { ApiError, explain, get, inNamespace, send, apiVersion } from '../../api/client';
import { useLoad } from '../../api/load';
import type { Task } from '../../api/types';
import { useKeys } from '../../keys';
import { location, set } from '../../router';
import { bytes } from '../../ui/format';
import { Long } from '../../ui/long';
import { Markdown } from '../../ui/markdown';
import { ended } from '../../ui/phase';
import { Empty, Failure, Loading } from '../../ui/states';
import { useSteps } from '../../ui/steps';
import { Text, visible } from '../../ui/text';
import { yaml } from '../../ui/yaml';

interface Props {
  name: string;
  task: Task | undefined;
}

export function RunResult({ name, task }: Props) {
  const result = useLoad(`${name}/${task?.status?.phase}`, (signal) => get<{ result?: string }>(inNamespace('tasks', name, 'result'), signal));
  const raw = location.value.query.get('raw') !== null;
  if (result.loading.value) return <Loading what="the result" />;
  const refused = result.error.value instanceof ApiError && result.error.value.code === 403;
  if (!ended(task?.status?.phase) && result.error.value && !refused) return <Empty>The task has not ended, so there is no result yet.</Empty>;
  if (result.error.value) return <Failure error={result.error.value} retry={result.reload} />;
  const text = result.data.value?.result ?? '';
  if (!text) return <Empty>The task ended without a result.</Empty>;
  return (
    <>
      <p><label class="check"><input type="checkbox" checked={raw} onChange={(e) => set({ raw: e.currentTarget.checked ? 'yes' : '' })} /> As it was written</label></p>
      {raw || text.length > 100_000 ? <Long text={text} label="Result" /> : <Markdown text={text} />}
    </>
  );
}

interface Artifact {
  filename: string;
  size?: number;
  contentType?: string;
}

export function RunArtifacts({ name, task }: Props) {
  const list = useLoad(`${name}/${task?.status?.phase}`, (signal) => get<{ artifacts: Artifact[] }>(inNamespace('tasks', name, 'artifacts'), signal));
  const problem = useSignal('');
  const box = useSteps<HTMLTableSectionElement>('artifact');
  useKeys([{ key: 'Enter', label: 'Download the artifact', run: () => {
    const row = document.activeElement;
    return row instanceof HTMLTableRowElement && box.current?.contains(row) ? row.querySelector('button')?.click() : false;
  } }]);
  if (list.error.value) return <Failure error={list.error.value} retry={list.reload} />;
  if (!list.data.value) return <Loading what="artifacts" />;
  const all = list.data.value.artifacts;
  if (all.length === 0) return <Empty>The run has left no artifacts.</Empty>;
  const save = async (file: string) => {
    try {
      const data = await (await send(inNamespace('tasks', name, 'artifacts', file), { accept: '*/*' })).blob();
      const url = URL.createObjectURL(new Blob([data], { type: 'application/octet-stream' })); // never shown as a page of this origin
      const a = document.createElement('a');
      a.href = url;
      a.download = visible(file).replace(/[/\\]/g, '_');
      a.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      problem.value = '';
    } catch (e) {
      problem.value = explain(e);
    }
  };
  return (
    <>
      {problem.value && <p class="notice" role="alert">{problem.value}</p>}
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Artifacts">
      <table aria-label="Artifacts">
        <thead><tr><th class="wide" scope="col">Name</th><th class="number" scope="col">Size</th><th scope="col">Action</th></tr></thead>
        <tbody ref={box}>
          {all.slice(0, 500).map((a) => (
            <tr key={a.filename} data-step tabIndex={-1}>
              <td class="wide"><Text>{a.filename}</Text></td>
              <td class="number">{a.size === undefined ? '–' : bytes(a.size)}</td>
              <td><button type="button" onClick={() => void save(a.filename)}>Download</button></td>
            </tr>
          ))}
        </tbody>
      </table>
      </div>
    </>
  );
}

export function RunYAML({ task }: Props) {
  if (!task) return <Loading what="the task" />;
  const { managedFields: _, ...metadata } = task.metadata as Task['metadata'] & { managedFields?: unknown };
  return <Long text={yaml({ apiVersion, kind: 'Task', ...task, metadata })} label="The task as YAML" />;
}
