// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a run changed in its repository, by file, and what became of it.
import { useSignal } from '@preact/signals';
import { ApiError, get, inNamespace, query, send } from '../../api/client';
import { useLoad } from '../../api/load';
import { filesOf, type FileChange } from '../../api/patch';
import type { EventPage, Task } from '../../api/types';
import { bytes, count } from '../../ui/format';
import { Long } from '../../ui/long';
import { Patch } from '../../ui/patch';
import { ended } from '../../ui/phase';
import { Empty, Failure, Loading } from '../../ui/states';
import { useSteps } from '../../ui/steps';
import { Text } from '../../ui/text';
import { RunDelivery } from './delivery';

// changes reports whether a task is to change its repository.
export function changes(task: Task | undefined): boolean {
  return task?.spec.workspace?.intent === 'write';
}

const mostRead = 4 << 20; // bytes of a diff
const mostSigned = 100_000; // characters of a file whose lines are shown by their signs
const mostOpen = 400; // lines of files that are unfolded at first
const part = 100; // files that are shown at first

interface Changed {
  files: FileChange[];
  all?: number | undefined; // files that changed, as far as it is known
  cut: boolean; // whether there is more than mostRead
}

// changed reads what a run changed.
async function changed(name: string, signal: AbortSignal): Promise<Changed> {
  const frozen = get<EventPage>(query(inNamespace('tasks', name, 'events'), { type: 'WorkspaceFrozen', order: 'desc', limit: 1 }), signal).catch(() => undefined);
  const body = (await send(inNamespace('tasks', name, 'artifacts', 'workspace.diff'), { accept: '*/*', signal })).body?.getReader();
  const decoder = new TextDecoder();
  let [text, read, cut] = ['', 0, false];
  for (let got; body && (got = await body.read()) && !got.done; ) {
    if ((read += got.value.length) > mostRead) {
      cut = true;
      void body.cancel();
      break;
    }
    text += decoder.decode(got.value, { stream: true });
  }
  const all = (await frozen)?.events[0]?.content?.changedFiles;
  return { files: filesOf(text), all: typeof all === 'number' ? all : undefined, cut };
}

export function RunChanges({ name, task }: { name: string; task: Task | undefined }) {
  const diff = useLoad(`${name}/${task?.status?.phase}`, (signal) => changed(name, signal), 0, name);
  const d = task?.status?.delivery;
  return (
    <>
      {task && d && <RunDelivery name={name} task={task} delivery={d} />}
      <Diff diff={diff} over={ended(task?.status?.phase)} />
    </>
  );
}

function Diff({ diff, over }: { diff: ReturnType<typeof useLoad<Changed>>; over: boolean }) {
  const found = diff.data.value;
  const error = diff.error.value;
  if (error instanceof ApiError && error.code === 404) return <Empty>{over ? 'The run left no changes: it failed before, or changed nothing.' : 'What the run changes is known when it is over.'}</Empty>;
  if (error) return <Failure error={error} retry={diff.reload} />;
  if (!found) return <Loading what="the changes" />;
  if (found.files.length === 0 && !found.all) return <Empty>The run changed nothing.</Empty>;
  return <Files {...found} />;
}

const files = (n: number) => `${count(n)} ${n === 1 ? 'file' : 'files'}`;

function Files({ files: list, all, cut }: Changed) {
  const box = useSteps<HTMLDivElement>('file');
  const shown = useSignal(part);
  const sum = (f: (c: FileChange) => number) => list.reduce((n, c) => n + f(c), 0);
  const left = list.length - shown.value;
  const missing = (all ?? 0) - list.length;
  let room = mostOpen;
  const unfolded = list.slice(0, shown.value).map((c) => { // a long file does not fold those after it
    const fits = c.added + c.removed < room;
    if (fits) room -= c.added + c.removed + 1;
    return fits;
  });
  return (
    <section aria-label="Changes">
      <h2>{files(Math.max(all ?? 0, list.length))} changed <Lines added={sum((c) => c.added)} removed={sum((c) => c.removed)} /></h2>
      {cut && <p class="notice">The changes are larger than {bytes(mostRead)}, and only the first of them are shown. The artifact workspace.diff has all of them.</p>}
      {!cut && missing > 0 && <p class="notice">{files(missing)} of these {missing === 1 ? 'is' : 'are'} not shown: the diff had no room for {missing === 1 ? 'it' : 'them'}.</p>}
      <div ref={box}>
        {list.slice(0, shown.value).map((c, i) => <File key={i} change={c} unfolded={unfolded[i] ?? false} />)}
      </div>
      {left > 0 && <p class="more"><button type="button" onClick={() => (shown.value += part)}>Show more</button> <span class="muted">{files(left)} are not shown.</span></p>}
    </section>
  );
}

function Lines({ added, removed }: { added: number; removed: number }) {
  return <span class="signs"><span class="came">+{count(added)}</span> <span class="went">−{count(removed)}</span></span>;
}

function File({ change: c, unfolded }: { change: FileChange; unfolded: boolean }) {
  const open = useSignal(unfolded);
  return (
    <details class="file" open={open.value} onToggle={(e) => (open.value = e.currentTarget.open)}>
      <summary data-step>
        <Text>{c.name}</Text> {c.what !== 'changed' && <span class="muted small">{c.what}</span>} {c.binary ? <span class="muted small">binary</span> : <Lines added={c.added} removed={c.removed} />}
      </summary>
      {open.value && <Content change={c} />}
    </details>
  );
}

function Content({ change: c }: { change: FileChange }) {
  const label = `Changes of ${c.name}`;
  return (
    <>
      {c.mode && <p class="muted small">Mode: <Text>{c.mode}</Text></p>}
      {c.binary && <p class="muted">A binary file, or one too long to compare, is not shown line by line. The branch and the artifact workspace.diff have it.</p>}
      {!c.binary && !c.text && !c.mode && <p class="muted">An empty file.</p>}
      {c.text && (c.text.length > mostSigned ? <Long text={c.text} label={label} /> : <Patch text={c.text} label={label} />)}
    </>
  );
}
