// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The decision on an approval. y and n choose it, and Enter confirms it, so that one key alone decides nothing.
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { explain, inNamespace, post, apiVersion } from '../../api/client';
import { may } from '../../api/may';
import type { Approval } from '../../api/types';
import { useKeys } from '../../keys';
import type { Seen } from '../../ui/seen';

export function Decision({ approval, exact, seen, decided }: { approval: Approval; exact: boolean; seen: Seen; decided: () => void }) {
  const choice = useSignal<'' | 'approve' | 'decline'>('');
  const problem = useSignal('');
  const busy = useSignal(false);
  const reason = useRef<HTMLTextAreaElement>(null);
  const allowed = may('create', 'approvals/decision');
  const choose = (c: 'approve' | 'decline') => {
    if (!allowed) return;
    if (c === 'approve' && seen.left.value !== 0) seen.next();
    else choice.value = c;
  };
  useKeys([
    { key: 'y', label: 'Approve', run: () => choose('approve') },
    { key: 'n', label: 'Decline', run: () => choose('decline') },
  ]);
  useLayoutEffect(() => { // before anything can be typed beside it
    if (choice.value) reason.current?.focus();
  }, [choice.value]);

  if (allowed === undefined) return <p class="muted">Finding out whether you may decide …</p>;
  if (!allowed) return <p class="muted">Your role does not permit you to decide on this.</p>;
  if (!choice.value) {
    return (
      <p class="actions">
        <button type="button" class="primary" disabled={seen.left.value !== 0} onClick={() => choose('approve')}>Approve <kbd>y</kbd></button>
        <button type="button" onClick={() => choose('decline')}>Decline <kbd>n</kbd></button>
        {seen.left.value > 0 && <><button type="button" onClick={seen.next}>Show the next part <kbd>y</kbd></button> <span class="muted small" role="status">To approve this, look at all of it: {seen.left.value === 1 ? 'one part was' : `${seen.left.value} parts were`} not in view.</span></>}
      </p>
    );
  }
  const send = async () => {
    if (busy.value) return;
    busy.value = true;
    problem.value = '';
    try {
      await post(inNamespace('approvals', approval.metadata.name, 'decision'), {
        apiVersion, kind: 'ApprovalDecision',
        spec: { decision: choice.value, reason: reason.current?.value.trim() ?? '', taskName: approval.spec.taskName },
      });
      decided();
    } catch (e) {
      problem.value = explain(e);
      busy.value = false;
    }
  };
  const verb = choice.value === 'approve' ? 'Approve' : 'Decline';
  return (
    <form class="decide" onSubmit={(e) => (e.preventDefault(), void send())}>
      <label for="reason">{verb}{exact ? '' : ' what is not shown in full'}: a reason, if you want to give one</label>
      <textarea
        id="reason" ref={reason} maxLength={1000} disabled={busy.value}
        onKeyDown={(e) => {
          if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) (e.preventDefault(), void send());
          if (e.key === 'Escape') (e.stopPropagation(), (choice.value = ''));
        }}
      />
      {problem.value && <p class="notice" role="alert">{problem.value}</p>}
      <p class="actions">
        <button type="submit" class={choice.value === 'approve' ? 'primary' : 'danger'} disabled={busy.value}>{busy.value ? 'Sending …' : verb} <kbd>Enter</kbd></button>
        <button type="button" disabled={busy.value} onClick={() => (choice.value = '')}>Cancel <kbd>Esc</kbd></button>
      </p>
    </form>
  );
}
