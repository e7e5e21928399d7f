// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One monitor: what it is, what it looks after, and a tab for each kind of its records.
import { apiVersion, inNamespace } from '../api/client';
import { useList } from '../api/list';
import type { Monitor } from '../api/monitor';
import { named } from '../api/paths';
import { useKeys } from '../keys';
import { href, location } from '../router';
import { Act } from '../ui/act';
import { Fact } from '../ui/eventdetails';
import { ago } from '../ui/format';
import { Long } from '../ui/long';
import { webLink } from '../ui/markdown';
import { Phase } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { Text, visible } from '../ui/text';
import { yaml } from '../ui/yaml';
import { phaseOf } from './monitor/about';
import { Items } from './monitor/items';
import { CommandRecords, MutationRecords, RunRecords, WorkRecords, type Of } from './monitor/records';

const tabs = [
  { id: '', title: 'Items', view: Items },
  { id: 'runs', title: 'Runs', view: RunRecords },
  { id: 'commands', title: 'Commands', view: CommandRecords },
  { id: 'work', title: 'Work', view: WorkRecords },
  { id: 'written', title: 'Written', view: MutationRecords },
  { id: 'yaml', title: 'YAML', view: MonitorYAML },
];

export function MonitorView({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  const { items, error, loading } = useList<Monitor>(inNamespace('repositorymonitors'), named(name), 0);
  const monitor = items.value.find((m) => m.metadata.name === name);
  const tab = tabs.find((t) => t.id === (location.value.query.get('tab') ?? '')) ?? tabs[0];
  const path = `/monitors/${encodeURIComponent(name)}`;
  useKeys(tabs.map((t, i) => ({ key: String(i + 1), label: t.title, run: () => document.getElementById(`tab-${t.id}`)?.click() })));
  const heading = <h1><Text>{name}</Text></h1>;
  if (!monitor && error.value) return <>{heading}<Failure error={error.value} /></>;
  if (!monitor) return <>{heading}{loading.value ? <Loading what="the monitor" /> : <Empty>There is no monitor of this name in the namespace. <a href={href('/monitors')}>Show all monitors.</a></Empty>}</>;
  const View = tab?.view ?? Items;
  return (
    <>
      <p class="small"><a href={href('/monitors')}>Monitors</a></p>
      <div class="title">
        {heading}
        <Phase phase={phaseOf(monitor)} />
        <div class="acts">
          {!monitor.spec.suspend && <Act resource="repositorymonitors" name={name} actions={[{ title: 'Look now', sub: 'runs', kind: 'MonitorRunRequest', done: 'A run is queued.' }]} />}
        </div>
      </div>
      <Notice error={error.value} />
      <Summary monitor={monitor} />
      <nav class="tabs" aria-label="What the monitor keeps">
        {tabs.map((t) => <a key={t.id} id={`tab-${t.id}`} href={href(path, { tab: t.id })} aria-current={t === tab ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      <View key={tab?.id} of={{ monitorName: name }} monitor={monitor} />
    </>
  );
}

function Summary({ monitor: { spec, status = {} } }: { monitor: Monitor }) {
  return (
    <>
      {(status.conditions ?? []).filter((c) => c.message).map((c) => <p key={c.type} class={c.status === 'True' ? 'muted' : 'notice'}><Text>{`${c.type}: ${c.message}`}</Text></p>)}
      <dl class="facts">
        <div><dt>Repository</dt><dd>{webLink(visible(spec.repoURL), '')}</dd></div>
        <Fact name="Branch" value={spec.branch} />
        <Fact name="Schedule" value={spec.suspend ? 'suspended' : spec.schedule} />
        <Fact name="Last run" value={ago(status.lastRunTime)} />
        <Fact name="Last one that succeeded" value={ago(status.lastSuccessfulRunTime)} />
        <Figure name="Pull requests" n={status.openPullRequests} />
        <Figure name="Reviews" n={status.pendingReviews} />
        <Figure name="Repairs" n={status.activeRepairs} />
        <Figure name="Ready to merge" n={status.mergeReadyItems} />
        <Figure name="Issues" n={status.openIssues} />
        <Figure name="Work on issues" n={status.pendingIssueActions} />
        <Figure name="Blocked" n={(status.blockedItems ?? 0) + (status.blockedIssues ?? 0)} />
      </dl>
    </>
  );
}

function Figure({ name, n = 0 }: { name: string; n?: number | undefined }) {
  return <Fact name={name} value={String(n)} />;
}

function MonitorYAML({ monitor }: { of: Of; monitor: Monitor }) {
  const { managedFields: _, ...metadata } = monitor.metadata as Monitor['metadata'] & { managedFields?: unknown };
  return <Long text={yaml({ apiVersion, kind: 'RepositoryMonitor', ...monitor, metadata })} label="The monitor as YAML" />;
}
