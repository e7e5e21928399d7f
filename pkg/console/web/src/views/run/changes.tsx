// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run changed in its repository, and what became of it.
import { ApiError, inNamespace, send } from '../../api/client';
import { useLoad } from '../../api/load';
import type { Task } from '../../api/types';
import { Fact } from '../../ui/eventdetails';
import { words } from '../../ui/format';
import { ended } from '../../ui/phase';
import { Long } from '../../ui/long';
import { Patch } from '../../ui/patch';
import { Empty, Failure, Loading } from '../../ui/states';

// changes reports whether a task is to change its repository.
export function changes(task: Task | undefined): boolean {
  return task?.spec.workspace?.intent === 'write';
}

const mostShown = 500_000; // characters that are shown by their signs

export function RunChanges({ name, task }: { name: string; task: Task | undefined }) {
  const diff = useLoad(`${name}/${task?.status?.phase}`, async (signal) => (await send(inNamespace('tasks', name, 'artifacts', 'workspace.diff'), { accept: '*/*', signal })).text());
  const d = task?.status?.delivery;
  return (
    <>
      {d && (
        <dl class="facts">
          <Fact name="Delivery" value={d.state && words(d.state)} />
          <Fact name="Published to" value={task?.spec.workspace?.publicationGitRepo ?? task?.spec.workspace?.gitRepo} />
          <Fact name="Branch" value={d.branch} />
          <Fact name="Run began with" value={d.startingSHA} />
          <Fact name="Commit" value={d.expectedCommitSHA} />
          <Fact name="Seen at" value={d.verifiedRemoteSHA} />
          <Fact name="Went on to" value={d.supersedingRemoteSHA} />
        </dl>
      )}
      <Diff diff={diff} over={ended(task?.status?.phase)} />
    </>
  );
}

function Diff({ diff, over }: { diff: ReturnType<typeof useLoad<string>>; over: boolean }) {
  if (diff.loading.value) return <Loading what="the changes" />;
  const error = diff.error.value;
  if (error instanceof ApiError && error.code === 404) return <Empty>{over ? 'The run left no changes: it failed before, or changed nothing.' : 'What the run changes is known when it is over.'}</Empty>;
  if (error) return <Failure error={error} retry={diff.reload} />;
  const text = diff.data.value ?? '';
  if (!text) return <Empty>The run changed nothing.</Empty>;
  return text.length > mostShown ? <Long text={text} label="Changes" /> : <Patch text={text} label="Changes" />;
}
