// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One pull request or issue that a monitor looks after: what it is, what keeps it from going on, and what was done about it.
import { inNamespace } from '../api/client';
import { useList } from '../api/list';
import { commandRequest, commandsFor, targetName, type MonitorItem } from '../api/monitor';
import { named } from '../api/paths';
import { useKeys } from '../keys';
import { href, location } from '../router';
import { Act } from '../ui/act';
import { Fact } from '../ui/eventdetails';
import { ago, words } from '../ui/format';
import { webLink } from '../ui/markdown';
import { Phase } from '../ui/phase';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { Text, oneLine, visible } from '../ui/text';
import { ItemState } from './monitor/itemstate';
import { CommandRecords, MutationRecords, WorkRecords } from './monitor/records';

const tabs = [
  { id: '', title: 'State', view: ItemState },
  { id: 'work', title: 'Work', view: WorkRecords },
  { id: 'commands', title: 'Commands', view: CommandRecords },
  { id: 'written', title: 'Written', view: MutationRecords },
];

export function MonitorItemView({ params }: { params: Record<string, string> }) {
  const { monitor = '', name = '' } = params;
  const { items, error, loading } = useList<MonitorItem>(inNamespace('monitoritems'), named(name), 0);
  const item = items.value.find((i) => i.metadata.name === name && i.spec.monitorName === monitor);
  const tab = tabs.find((t) => t.id === (location.value.query.get('tab') ?? '')) ?? tabs[0];
  const path = `/monitors/${encodeURIComponent(monitor)}/${encodeURIComponent(name)}`;
  useKeys(tabs.map((t, i) => ({ key: String(i + 1), label: t.title, run: () => document.getElementById(`tab-${t.id}`)?.click() })));
  const above = <p class="small"><a href={href(`/monitors/${encodeURIComponent(monitor)}`)}>Monitor <Text>{monitor}</Text></a></p>;
  if (!item) {
    const heading = <h1><Text>{name}</Text></h1>;
    if (error.value) return <>{above}{heading}<Failure error={error.value} /></>;
    return <>{above}{heading}{loading.value ? <Loading what="the pull request or issue" /> : <Empty>The monitor knows no such pull request or issue.</Empty>}</>;
  }
  const View = tab?.view ?? ItemState;
  const { spec, status = {} } = item;
  return (
    <>
      {above}
      <div class="title">
        <h1><span class="muted">{targetName(spec.targetKind, spec.number)}</span> <bdi>{oneLine(status.title ?? '')}</bdi></h1>
        <Phase phase={status.state ?? 'unknown'} />
        <div class="acts"><Act resource="repositorymonitors" name={monitor} actions={actionsOf(item)} /></div>
      </div>
      <Notice error={error.value} />
      <Summary item={item} />
      <nav class="tabs" aria-label="What is known of it">
        {tabs.map((t) => <a key={t.id} id={`tab-${t.id}`} href={href(path, { tab: t.id })} aria-current={t === tab ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      <View key={tab?.id} of={spec} item={item} />
    </>
  );
}

function actionsOf(item: MonitorItem) {
  const { targetKind, number } = item.spec;
  const commands = commandsFor(item).map((c) => ({
    title: c.title, sub: 'commands', kind: 'MonitorCommandRequest', body: commandRequest(item, c.intent), asks: c.asks, done: `The command ${words(c.intent)} was given.`,
  }));
  return [...commands, { title: 'Look now', sub: 'runs', kind: 'MonitorRunRequest', body: { targetKind, targetNumber: number }, done: 'A run is queued.' }];
}

function Summary({ item: { spec, status = {} } }: { item: MonitorItem }) {
  const { blockedReason, message } = status;
  const from = [status.headRepository, status.headBranch].filter(Boolean).join(', ');
  return (
    <>
      {(blockedReason || message) && <p class="notice bad" aria-label="Blocked"><strong>Blocked{blockedReason && <>: <Text>{words(blockedReason)}</Text></>}. </strong><Text>{message}</Text></p>}
      <dl class="facts">
        {status.url && <div><dt>At the code host</dt><dd>{webLink(visible(status.url), targetName(spec.targetKind, spec.number))}</dd></div>}
        <Fact name="Author" value={status.author} />
        <Fact name="Labels" value={status.labels?.join(', ')} />
        <Fact name="Draft" value={status.draft ? 'yes' : ''} />
        <Fact name="Head" value={status.headSHA} />
        <Fact name="From" value={from} />
        <Fact name="To" value={status.baseBranch} />
        <Fact name="Checks" value={status.checks && words(status.checks)} />
        <Fact name="Stopped" value={status.stopped ? 'yes' : ''} />
        <Fact name="Seen" value={status.observedAt && ago(status.observedAt)} />
      </dl>
    </>
  );
}
