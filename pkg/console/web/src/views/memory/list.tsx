// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Memories: what they say, whom they reach and where they come from.
import { inNamespace } from '../../api/client';
import type { Memory } from '../../api/kinds';
import { useList } from '../../api/list';
import { href, location, set } from '../../router';
import { ago, count } from '../../ui/format';
import { Markdown } from '../../ui/markdown';
import { Empty, Failure, Loading, Notice } from '../../ui/states';
import { Text } from '../../ui/text';
import { Act } from './act';

export function MemoryList() {
  const { items, loading, error, rest, more } = useList<Memory>(inNamespace('memories'));
  const text = location.value.query.get('q') ?? '';
  const rows = items.value
    .filter((m) => !m.status?.deleted && `${m.metadata.name} ${m.spec.content} ${(m.spec.tags ?? []).join(' ')}`.toLowerCase().includes(text.toLowerCase()))
    .sort((a, b) => (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  return (
    <>
      <div class="bar"><input type="search" placeholder="Text or tag" aria-label="Find a memory" value={text} onInput={(e) => set({ q: e.currentTarget.value })} /></div>
      {items.value.length > 0 && <Notice error={error.value} />}
      {items.value.length === 0 && (error.value ? <Failure error={error.value} /> : loading.value && <Loading what="memories" />)}
      {!loading.value && !error.value && items.value.length === 0 && <Empty>Nothing is remembered in this namespace yet.</Empty>}
      {items.value.length > 0 && rows.length === 0 && <Empty>No memory matches what you look for.</Empty>}
      <div class="transcript">{rows.map((m) => <One key={m.metadata.name} memory={m} />)}</div>
      {rest.value !== 0 && <p class="more"><button type="button" onClick={more}>Load more</button></p>}
    </>
  );
}

function One({ memory }: { memory: Memory }) {
  const { spec, status, metadata } = memory;
  const scope = [spec.agentName && `agent ${spec.agentName}`, spec.sessionName && `session ${spec.sessionName}`].filter(Boolean).join(', ') || 'all tasks of the namespace';
  return (
    <article class="turn">
      <h2><Text>{metadata.name}</Text>{status?.disabled && ' (disabled)'}</h2>
      <Markdown text={spec.content} />
      <p class="muted small">
        For {<Text>{scope}</Text>}. Recalled {count(status?.recalledCount ?? 0)} times{status?.lastRecalledAt && `, last ${ago(status.lastRecalledAt)}`}.
        {spec.tags?.length ? <> Tags: <Text>{spec.tags.join(', ')}</Text>.</> : ''}
        {status?.origin && <> From the task <a href={href(`/tasks/${encodeURIComponent(status.origin.taskName)}`, {}, status.origin.sequence ? `seq=${status.origin.sequence}` : '')}><Text>{status.origin.taskName}</Text></a>.</>}
      </p>
      <Act resource="memories" name={metadata.name} actions={status?.disabled ? [{ title: 'Enable', sub: 'enable' }] : [{ title: 'Disable', sub: 'disable' }]} />
    </article>
  );
}
