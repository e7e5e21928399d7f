// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What happens now: what runs, what waits for somebody, what failed, and what today has used.
import type { ComponentChildren } from 'preact';
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import { useTasks } from '../api/taskquery';
import type { Approval } from '../api/types';
import { cost, report } from '../api/usage';
import { href } from '../router';
import { ApprovalTable, pendingFirst } from '../ui/approvaltable';
import { count, now, short } from '../ui/format';
import { phases } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { TaskTable, started } from '../ui/tasktable';

const most = 20; // rows of a section

export function Now() {
  const active = useTasks({ orderBy: 'started', descending: true, phases: phases.active, limit: most });
  const failed = useTasks({ orderBy: 'started', descending: true, phases: phases.failed, limit: 500 });
  const known = active.data.value && failed.data.value;
  const none = known && active.data.value?.matched === 0 && failed.data.value?.matched === 0;
  const any = useTasks(none ? { orderBy: 'created', limit: 1 } : null);
  const approvals = useList<Approval>(inNamespace('approvals'), { fieldSelector: 'status.state=pending' }, 0);
  const today = new Date(now.value).toISOString().slice(0, 10); // reports count days in UTC
  const usage = useLoad(may('create', 'usagereports') ? `${today}/${Math.floor(now.value / 60_000)}` : '', (signal) =>
    report({ from: today, by: 'day', limit: 1 }, signal));
  const pending = approvals.items.value.filter((a) => a.status?.state === 'pending').sort(pendingFirst);
  const error = active.error.value ?? failed.error.value;
  if (error && !known) return <><div class="title"><h1>Now</h1></div><Failure error={error} /></>;
  const since = now.value - 86_400_000;
  const failures = failed.data.value ?? { tasks: [], matched: 0 };
  const recent = failures.tasks.filter((t) => Date.parse(t.status?.completionTime ?? started(t)) > since).length;
  const works = active.data.value ?? { tasks: [], matched: 0 };
  const day = usage.data.value?.breakdown?.[0]?.usage;
  return (
    <>
      <div class="title"><h1>Now</h1></div>
      <Notice error={error} />
      <div class="cards">
        <Card title="waiting for a decision" to={href('/approvals')}>{approvals.error.value ? '–' : pending.length}</Card>
        <Card title="active tasks" to={href('/tasks', { phase: 'active' })}>{known ? count(works.matched) : '–'}</Card>
        <Card title="failed in 24 hours" to={href('/tasks', { phase: 'failed' })}>{known ? count(recent) : '–'}{failures.matched > failures.tasks.length && recent > 0 && '+'}</Card>
        <Card title="tokens today (UTC)">{usage.error.value ? '–' : short(usage.data.value ? (day?.totalTokens ?? (day ? undefined : 0)) : undefined)}</Card>
        <Card title="cost today (UTC)">{day ? cost(day) : '–'}</Card>
      </div>
      {!known && <Loading what="tasks" />}
      {none && any.data.value?.matched === 0 && <Empty>There are no tasks in this namespace yet. {may('create', 'tasks') ? <a href={href('/new')}>Create one</a> : <>Create one with <code>kubectl apply</code></>}, and follow it here.</Empty>}
      {pending.length > 0 && <Section title="Waiting for a decision" all={pending.length > most ? href('/approvals') : ''}><ApprovalTable approvals={pending.slice(0, most)} /></Section>}
      {known && (!none || (any.data.value?.matched ?? 0) > 0) && (
        <Section title="Active" all={works.matched > most ? href('/tasks', { phase: 'active' }) : ''}>
          {works.matched > 0 ? <TaskTable label="Active tasks" tasks={works.tasks} /> : <Empty>Nothing runs.</Empty>}
        </Section>
      )}
      {failures.matched > 0 && <Section title="Failed last" all={failures.matched > most ? href('/tasks', { phase: 'failed' }) : ''}><TaskTable label="Failed tasks" tasks={failures.tasks.slice(0, most)} /></Section>}
    </>
  );
}

function Card({ title, to, children }: { title: string; to?: string; children: ComponentChildren }) {
  const content = <><b>{children}</b><span>{title}</span></>;
  return to ? <a class="card" href={to}>{content}</a> : <div class="card">{content}</div>;
}

function Section({ title, all, children }: { title: string; all: string; children: ComponentChildren }) {
  return <section><h2>{title}</h2>{children}{all && <p class="more"><a href={all}>Show all</a></p>}</section>;
}
