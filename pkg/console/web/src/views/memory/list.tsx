// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Memories: what they say, whom they reach and where they come from.
import { useRef } from 'preact/hooks';
import { inNamespace } from '../../api/client';
import type { Memory } from '../../api/kinds';
import { useList } from '../../api/list';
import { useKeys } from '../../keys';
import { location, set, taskHref } from '../../router';
import { Act, useChoice } from '../../ui/act';
import { ago, count } from '../../ui/format';
import { Listed } from '../../ui/listed';
import { Markdown } from '../../ui/markdown';
import { useSteps } from '../../ui/steps';
import { Text, visible } from '../../ui/text';

export function MemoryList() {
  const list = useList<Memory>(inNamespace('memories'));
  const search = useRef<HTMLInputElement>(null);
  useKeys([{ key: '/', label: 'Find a memory', run: () => search.current?.focus() }]);
  const box = useSteps<HTMLDivElement>('memory');
  useChoice('Enable the memory', 'Disable the memory');
  const text = location.value.query.get('q') ?? '';
  const rows = list.items.value
    .filter((m) => !m.status?.deleted && `${m.metadata.name} ${m.spec.content} ${(m.spec.tags ?? []).join(' ')}`.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  return (
    <>
      <div class="bar"><input ref={search} type="search" placeholder="Text or tag" aria-label="Find a memory" value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      <Listed list={list} what="memories" shown={rows.length} none={'Nothing is remembered in this namespace yet.'} unmatched="No memory matches what you look for.">
        <div ref={box} class="transcript">{rows.map((m) => <One key={m.metadata.name} memory={m} />)}</div>
      </Listed>
    </>
  );
}

function One({ memory }: { memory: Memory }) {
  const { spec, status, metadata } = memory;
  const scope = [spec.agentName && `agent ${spec.agentName}`, spec.sessionName && `session ${spec.sessionName}`].filter(Boolean).join(', ') || 'all tasks of the namespace';
  return (
    <article class="turn" data-step tabIndex={-1} aria-label={visible(metadata.name)}>
      <h2><Text>{metadata.name}</Text>{status?.disabled && ' (disabled)'}</h2>
      <Markdown text={spec.content} />
      <p class="muted small">
        For {<Text>{scope}</Text>}. Recalled {count(status?.recalledCount ?? 0)} times{status?.lastRecalledAt && `, last ${ago(status.lastRecalledAt)}`}.
        {spec.tags?.length ? <> Tags: <Text>{spec.tags.join(', ')}</Text>.</> : ''}
        {status?.origin && <> From the task <a href={taskHref(status.origin.taskName, status.origin.sequence)}><Text>{status.origin.taskName}</Text></a>.</>}
      </p>
      <Act resource="memories" name={metadata.name} actions={[status?.disabled ? { title: 'Enable', sub: 'enable', kind: 'MemoryChange', key: 'y' } : { title: 'Disable', sub: 'disable', kind: 'MemoryChange', key: 'n' }]} />
    </article>
  );
}
