// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What was decided alike before.
import { alike } from '../../api/approval';
import { useLoad } from '../../api/load';
import type { Approval } from '../../api/types';
import { href } from '../../router';
import { stateOf } from '../../ui/approvaltable';
import { ago, count } from '../../ui/format';
import { Phase } from '../../ui/phase';
import { Notice } from '../../ui/states';
import { Exactly, Text } from '../../ui/text';

const most = 10;

export function Alike({ approval }: { approval: Approval }) {
  const { data, error } = useLoad(`${approval.metadata.name}/${stateOf(approval)}`, (signal) => alike(approval, signal));
  const found = data.value;
  if (!found) return <Notice error={error.value} />;
  return (
    <>
      <Decided title={`The same arguments were decided before${found.same.length > 1 ? `, ${count(found.same.length)} times` : ''}`} approvals={found.same} />
      <Decided title={found.all ? 'Other calls of this tool' : 'Some of the other calls of this tool'} approvals={found.others} />
    </>
  );
}

function Decided({ title, approvals }: { title: string; approvals: Approval[] }) {
  if (approvals.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="plain">
        {approvals.slice(0, most).map((a) => (
          <li key={a.metadata.name}>
            <Phase phase={stateOf(a)} /> <a href={href(`/approvals/${a.metadata.name}`, { state: 'all' })}><Exactly>{a.spec.action || a.spec.taskName}</Exactly></a>{' '}
            <span class="muted">{ago(a.status?.decisionTime)}{a.status?.decisionActor ? ` by ${a.status.decisionActor}` : ''}{a.status?.decisionReason ? ': ' : ''}<Text>{a.status?.decisionReason}</Text></span>
          </li>
        ))}
      </ul>
    </section>
  );
}
