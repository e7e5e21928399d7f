// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What happens now: what runs, what waits for somebody, what failed, and what today has used.
import type { ComponentChildren } from 'preact';
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import type { Approval, Task } from '../api/types';
import { cost, report } from '../api/usage';
import { href } from '../router';
import { ApprovalTable, pendingFirst } from '../ui/approvaltable';
import { now, short } from '../ui/format';
import { phaseOf } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { TaskTable, byStart, started } from '../ui/tasktable';

const most = 20; // rows of a section

export function Now() {
  const tasks = useList<Task>(inNamespace('tasks'), {}, 500);
  const approvals = useList<Approval>(inNamespace('approvals'), { fieldSelector: 'status.state=pending' }, 0);
  const today = new Date(now.value).toISOString().slice(0, 10); // reports count days in UTC
  const usage = useLoad(may('create', 'usagereports') ? `${today}/${Math.floor(now.value / 60_000)}` : '', (signal) =>
    report({ from: today, by: 'day', limit: 1 }, signal));
  const pending = approvals.items.value.filter((a) => a.status?.state === 'pending').sort(pendingFirst);
  const all = [...tasks.items.value].sort((a, b) => byStart(b, a));
  const active = all.filter((t) => ['Running', 'Finalizing', 'Pending'].includes(t.status?.phase ?? 'Pending'));
  const failed = all.filter((t) => phaseOf(t) === 'Failed');
  const since = now.value - 86_400_000;
  const recent = failed.filter((t) => Date.parse(t.status?.completionTime ?? started(t)) > since);
  const plus = tasks.rest.value ? '+' : '';
  const day = usage.data.value?.status.breakdown?.[0]?.usage;
  if (tasks.error.value && all.length === 0) return <><div class="title"><h1>Now</h1></div><Failure error={tasks.error.value} /></>;
  return (
    <>
      <div class="title"><h1>Now</h1></div>
      <Notice error={tasks.error.value} />
      <div class="cards">
        <Card title="waiting for a decision" to={href('/approvals')}>{approvals.error.value ? '–' : pending.length}</Card>
        <Card title="active tasks" to={href('/tasks', { phase: 'active' })}>{active.length}{plus}</Card>
        <Card title="failed in 24 hours" to={href('/tasks', { phase: 'failed' })}>{recent.length}{plus}</Card>
        <Card title="tokens today (UTC)">{usage.error.value ? '–' : short(usage.data.value ? (day?.totalTokens ?? (day ? undefined : 0)) : undefined)}</Card>
        <Card title="cost today (UTC)">{day ? cost(day) : '–'}</Card>
      </div>
      {tasks.loading.value && <Loading what="tasks" />}
      {!tasks.loading.value && all.length === 0 && <Empty>There are no tasks in this namespace yet. Create one with <code>kubectl apply</code>, and follow it here.</Empty>}
      {pending.length > 0 && <Section title="Waiting for a decision" all={pending.length > most ? href('/approvals') : ''}><ApprovalTable approvals={pending.slice(0, most)} /></Section>}
      {all.length > 0 && (
        <Section title="Active" all={active.length > most ? href('/tasks', { phase: 'active' }) : ''}>
          {active.length > 0 ? <TaskTable label="Active tasks" tasks={active.slice(0, most)} /> : <Empty>Nothing runs.</Empty>}
        </Section>
      )}
      {failed.length > 0 && <Section title="Failed last" all={failed.length > most ? href('/tasks', { phase: 'failed' }) : ''}><TaskTable label="Failed tasks" tasks={failed.slice(0, most)} /></Section>}
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
