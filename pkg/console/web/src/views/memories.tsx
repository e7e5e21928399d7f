// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What runs recall, and what is proposed to be remembered.
import { href, location } from '../router';
import { MemoryList } from './memory/list';
import { Proposals } from './memory/proposals';

const tabs = [
  { id: '', title: 'Proposals', view: Proposals },
  { id: 'memories', title: 'Memories', view: MemoryList },
];

export function Memories() {
  const tab = tabs.find((t) => t.id === (location.value.query.get('tab') ?? '')) ?? tabs[0];
  const View = tab?.view ?? Proposals;
  return (
    <>
      <div class="title"><h1>Memory</h1></div>
      <nav class="tabs" aria-label="Memory">
        {tabs.map((t) => <a key={t.id} href={href('/memory', { tab: t.id })} aria-current={t === tab ? 'page' : undefined}>{t.title}</a>)}
      </nav>
      <View />
    </>
  );
}
