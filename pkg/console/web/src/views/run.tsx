// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One run: what it is, and a tab for each way to look at it.
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import { may } from '../api/may';
import { named } from '../api/paths';
import { usageOf, useRunning } from '../api/running';
import { about, why } from '../api/told';
import type { Task } from '../api/types';
import { useKeys } from '../keys';
import { go, href, location } from '../router';
import { Fact } from '../ui/eventdetails';
import { clock, count, words } from '../ui/format';
import { phaseOf } from '../ui/phase';
import { Empty, Failure } from '../ui/states';
import { TaskActions } from '../ui/taskactions';
import { Waits, agentOf, asks, took } from '../ui/tasktable';
import { Text, exactly, oneLine } from '../ui/text';
import { RunEvents } from './run/events';
import { RunLog } from './run/log';
import { RunChanges, changes } from './run/changes';
import { RunArtifacts, RunResult, RunYAML } from './run/outcome';
import { RunRequests } from './run/requests';
import { RunTrace } from './run/trace';
import { RunTranscript } from './run/transcript';

const allTabs: Array<{ id: string; title: string; view: typeof RunEvents; shown?: (task: Task | undefined) => boolean }> = [
  { id: '', title: 'Events', view: RunEvents },
  { id: 'transcript', title: 'Transcript', view: RunTranscript },
  { id: 'requests', title: 'Requests', view: RunRequests },
  { id: 'trace', title: 'Trace', view: RunTrace },
  { id: 'result', title: 'Result', view: RunResult },
  { id: 'changes', title: 'Changes', view: RunChanges, shown: changes },
  { id: 'artifacts', title: 'Artifacts', view: RunArtifacts },
  { id: 'log', title: 'Log', view: RunLog },
  { id: 'yaml', title: 'YAML', view: RunYAML },
];

export function Run({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  const { items, error, loading } = useList<Task>(inNamespace('tasks'), named(name), 0);
  const task = items.value.find((t) => t.metadata.name === name);
  const tabs = allTabs.filter((t) => !t.shown || t.shown(task));
  const tab = tabs.find((t) => t.id === (location.value.query.get('tab') ?? '')) ?? tabs[0];
  const path = `/tasks/${encodeURIComponent(name)}`;
  const compare = href('/compare', { a: name });
  useKeys([
    ...tabs.map((t, i) => ({ key: String(i + 1), label: t.title, run: () => document.getElementById(`tab-${t.id}`)?.click() })),
    { key: 'c', label: 'Compare with another run', run: () => go(compare) },
  ]);
  if (!task && error.value) return <><h1><Text>{name}</Text></h1><Failure error={error.value} /></>;
  if (!task && !loading.value) return <><h1><Text>{name}</Text></h1><Empty>There is no task of this name in the namespace. <a href={href('/tasks')}>Show all tasks.</a></Empty></>;
  const View = tab?.view ?? RunEvents;
  return (
    <div class={tab?.id ? '' : 'fill'}>
      <div class="title">
        <h1><Text>{name}</Text></h1>
        {task && <Waits task={task} />}
        <div class="tools">
          <a class="button" href={compare}>Compare with …</a>
          {task && may('create', 'tasks') && <a class="button" href={href('/new', { from: name })}>Run with changes …</a>}
        </div>
        {task && <TaskActions tasks={[task]} done={(a, good) => a.id === 'delete' && good.length > 0 && go(href('/tasks'))} />}
      </div>
      {task && <Summary task={task} />}
      <nav class="tabs" aria-label="Ways to look at the run">
        {tabs.map((t) => <a key={t.id} id={`tab-${t.id}`} href={href(path, { tab: t.id })} aria-current={t === tab ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      <View name={name} task={task} />
    </div>
  );
}

// Asks leads to the decisions that a run waits for.
function Asks({ task }: { task: Task }) {
  if (phaseOf(task) !== 'WaitingForApproval') return null;
  const all = asks(task);
  const several = href('/approvals', { q: task.metadata.name });
  return (
    <ul class="asks" aria-label="It waits for a decision">
      {all.length === 0 && <li><a href={several}>Waits for a decision</a></li>}
      {all.slice(0, most).map((a) => <li key={a.metadata.name}>Waits for a decision: <a href={href(`/approvals/${a.metadata.name}`)}><bdi>{oneLine(a.spec.action || a.spec.targetTool || a.metadata.name, 140, exactly)}</bdi></a></li>)}
      {all.length > most && <li><a href={several}>All {count(all.length)}</a></li>}
    </ul>
  );
}

const most = 5; // approvals that are named

// repositoryOf names the repository of a task and the commit that its run began with, or what it asks for until that is known.
function repositoryOf(task: Task): string {
  const { gitRepo, ref, branch, subPath } = task.spec.workspace ?? {};
  const at = task.status?.delivery?.startingSHA?.slice(0, 12) ?? ref ?? branch;
  return [gitRepo, at && `at ${at}`, subPath && `folder ${subPath}`].filter(Boolean).join(', ');
}

function Summary({ task }: { task: Task }) {
  const { delegation, hasChildren, attempts, delivery } = task.status ?? {};
  const { reason, message } = why(task);
  useRunning([task]);
  const usage = usageOf(task);
  const source = task.metadata.annotations?.['platform.ai/fork-source-task'];
  const repository = repositoryOf(task);
  const tree = delegation || hasChildren ? href(`/tree/${encodeURIComponent(delegation?.root ?? task.metadata.name)}`) : '';
  return (
    <>
      <p class="about"><Text>{about(task)}</Text></p>
      {(message || reason) && phaseOf(task) !== 'WaitingForApproval' && <p class={task.status?.phase === 'Failed' ? 'notice bad' : ''}>{reason && message && <strong>{words(reason)}: </strong>}<Text>{message || words(reason)}</Text></p>}
      <Asks task={task} />
      <dl class="facts">
        <Fact name="Agent" value={agentOf(task) || task.spec.type} />
        <Fact name="Model" value={task.status?.model ?? task.spec.ai?.model} />
        <Fact name="Started" value={task.status?.startTime && clock(task.status.startTime)} />
        <Fact name="Duration" value={task.status?.startTime && took(task)} />
        {usage && <Fact name="Tokens in / out" value={`${count(usage.inputTokens)} / ${count(usage.outputTokens)}${usage.unreportedRequests ? ' and what was not reported' : ''}`} />}
        {(attempts ?? 0) > 1 && <Fact name="Attempts" value={String(attempts)} />}
        {source && <div><dt>Fork of</dt><dd><a href={href('/compare', { a: source, b: task.metadata.name })} title="Compare them"><Text>{source}</Text></a></dd></div>}
        {repository && <Fact name="Repository" value={repository} />}
        {delivery?.branch && <div><dt>Branch</dt><dd><a href={href(`/tasks/${encodeURIComponent(task.metadata.name)}`, { tab: 'changes' })}><Text>{`${delivery.branch}: ${words(delivery.state ?? '')}`}</Text></a></dd></div>}
        {tree && <div><dt>Tree</dt><dd><a href={tree}>{delegation ? `Part of ${delegation.root}` : 'Its children'}</a></dd></div>}
      </dl>
    </>
  );
}
