// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What agents and people propose to remember, with its review.
import { useSignal } from '@preact/signals';
import { inNamespace } from '../../api/client';
import type { Proposal } from '../../api/kinds';
import { useList } from '../../api/list';
import { may } from '../../api/may';
import { location, set, taskHref } from '../../router';
import { Act, useChoice, type Action } from '../../ui/act';
import { ago } from '../../ui/format';
import { Markdown } from '../../ui/markdown';
import { Listed } from '../../ui/listed';
import { Long } from '../../ui/long';
import { Phase } from '../../ui/phase';
import { useSteps } from '../../ui/steps';
import { Text, visible } from '../../ui/text';

const states = ['', 'pending', 'accepted', 'rejected', 'applied', 'archived'];
const stateOf = (p: Proposal) => p.status?.state ?? 'pending';
const rank: Record<string, number> = { pending: 0, accepted: 1 };

export function Proposals() {
  const list = useList<Proposal>(inNamespace('memoryproposals'));
  const box = useSteps<HTMLDivElement>('proposal');
  useChoice('Accept or apply the proposal', 'Reject or archive the proposal');
  const state = location.value.query.get('state') ?? '';
  const rows = list.items.value
    .filter((p) => (state ? stateOf(p) === state : stateOf(p) !== 'archived'))
    .sort((a, b) => (rank[stateOf(a)] ?? 2) - (rank[stateOf(b)] ?? 2) || (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? ''));
  return (
    <>
      <div class="bar">
        <label class="field">State
          <select value={state} onChange={(e) => set({ state: e.currentTarget.value })}>{states.map((s) => <option key={s} value={s}>{s || 'all but archived'}</option>)}</select>
        </label>
      </div>
      <Listed list={list} what="proposals" shown={rows.length} none={'Nothing was proposed yet. Agents propose what is worth keeping, and nothing is recalled before somebody has applied it.'} unmatched="No proposal is in this state.">
        <div ref={box} class="transcript">{rows.map((p) => <One key={p.metadata.name} proposal={p} />)}</div>
      </Listed>
    </>
  );
}

function One({ proposal }: { proposal: Proposal }) {
  const { spec, status, metadata } = proposal;
  const note = useSignal('');
  const now = stateOf(proposal);
  const review = (to: string): Action => ({ title: to === 'accepted' ? 'Accept' : 'Reject', sub: 'review', kind: 'MemoryProposalReview', body: { spec: { status: to, ...(note.value ? { reviewNote: note.value } : {}) } }, primary: to === 'accepted', key: to === 'accepted' ? 'y' : 'n' });
  const archive: Action = { title: 'Archive', sub: 'archive', kind: 'MemoryChange', key: 'n' };
  const actions: Action[] = now === 'pending' ? [review('accepted'), review('rejected')] : now === 'accepted' ? [{ title: 'Apply', sub: 'apply', kind: 'MemoryProposalApplication', primary: true, key: 'y' }, archive] : now === 'rejected' ? [archive] : [];
  return (
    <article class="turn" data-step tabIndex={-1} aria-label={visible(spec.title)}>
      <div class="title"><h2><Text>{spec.title}</Text></h2><Phase phase={now} /></div>
      {spec.description && <Markdown text={spec.description} />}
      {spec.content && <blockquote><Markdown text={spec.content} /></blockquote>}
      {spec.patch && <Long text={spec.patch} label="Change" />}
      {status?.origin?.outsideText && <p class="notice">Text from elsewhere, such as a web page, may be in this proposal.</p>}
      <p class="muted small">
        {spec.type ?? 'memory'}, for {spec.agentName ? <>the agent <Text>{spec.agentName}</Text></> : 'all agents'}, proposed by <Text>{status?.proposedBy ?? '–'}</Text> {ago(metadata.creationTimestamp)}
        {status?.origin && <> in the task <a href={taskHref(status.origin.taskName, status.origin.sequence)}><Text>{status.origin.taskName}</Text></a></>}.
        {status?.reviewer && <> Reviewed by <Text>{status.reviewer}</Text> {ago(status.reviewedAt)}{status.reviewNote && <>: <Text>{status.reviewNote}</Text></>}</>}
      </p>
      {now === 'pending' && may('create', 'memoryproposals/review') && (
        <p><label class="field">Note <input value={note.value} maxLength={4096} onInput={(e) => (note.value = e.currentTarget.value)} /></label></p>
      )}
      <Act resource="memoryproposals" name={metadata.name} actions={actions} />
    </article>
  );
}
