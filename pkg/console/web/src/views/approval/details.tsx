// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One approval: exactly what is to be done, who asked, what was decided alike before, and the decision.
import type { Approval } from '../../api/types';
import { href, taskHref } from '../../router';
import { stateOf, left } from '../../ui/approvaltable';
import { Fact } from '../../ui/eventdetails';
import { ago, clock } from '../../ui/format';
import { Phase } from '../../ui/phase';
import { Long } from '../../ui/long';
import { Text } from '../../ui/text';
import { Decision } from './decision';

export function ApprovalDetails({ approval, all }: { approval: Approval; all: Approval[] }) {
  const { spec, status } = approval;
  const others = all.filter((a) => a !== approval && stateOf(a) !== 'pending' && a.spec.targetTool === spec.targetTool);
  const same = others.filter((a) => a.spec.targetArgsDigest && a.spec.targetArgsDigest === spec.targetArgsDigest);
  const rest = others.filter((a) => !same.includes(a)).slice(0, 10);
  return (
    <article class="approval" aria-label="The approval">
      <p><Phase phase={stateOf(approval)} /> <span class="muted">{left(approval)}</span></p>
      <h2><Text>{spec.action || `Call ${spec.targetTool ?? 'a tool'}`}</Text></h2>
      {spec.riskSummary && <p><Text>{spec.riskSummary}</Text></p>}
      <h3>Arguments of <Text>{spec.targetTool}</Text></h3>
      <Arguments value={spec.targetArgsPreview} />
      {stateOf(approval) === 'pending' && <Decision approval={approval} />}
      <dl class="facts">
        <div><dt>Task</dt><dd><a href={taskHref(spec.taskName, status?.requestedSeq)}>{spec.taskName}</a></dd></div>
        {spec.rootTask && spec.rootTask !== spec.taskName && <div><dt>Tree</dt><dd><a href={href(`/tree/${encodeURIComponent(spec.rootTask)}`)}>{spec.rootTask}</a></dd></div>}
        <Fact name="Asked for by" value={spec.requestedBy} />
        <Fact name="Severity" value={spec.severity} />
        <Fact name="Asked" value={clock(approval.metadata.creationTimestamp)} />
        <Fact name="Expires" value={spec.expiresAt && clock(spec.expiresAt)} />
      </dl>
      {status?.decisionTime && (
        <dl class="facts">
          <Fact name="Decided" value={clock(status.decisionTime)} />
          <Fact name="By" value={status.decisionActor} />
          <Fact name="Reason" value={status.decisionReason} />
          <Fact name="What came of it" value={[status.executionOutcome, status.executionReason].filter(Boolean).join(': ')} />
        </dl>
      )}
      <dl class="facts small">
        <Fact name="Digest of the arguments" value={spec.targetArgsDigest} />
        <Fact name="Digest of the call" value={spec.targetSpecDigest} />
        <Fact name="Id" value={approval.metadata.name} />
      </dl>
      <Alike title="The same arguments were decided before" approvals={same.slice(0, 10)} />
      <Alike title="Other calls of this tool" approvals={rest} />
    </article>
  );
}

// Arguments shows each argument as it is: a text with its line breaks, anything else as JSON.
function Arguments({ value }: { value: unknown }) {
  if (value === undefined || value === null) return <p class="muted">The call has no arguments.</p>;
  if (typeof value !== 'object' || Array.isArray(value)) return <Long text={JSON.stringify(value, null, 2)} label="Arguments" />;
  return (
    <dl class="arguments">
      {Object.entries(value).slice(0, 100).map(([name, v]) => (
        <div key={name}>
          <dt><Text>{name}</Text></dt>
          <dd><Long text={typeof v === 'string' ? v : JSON.stringify(v, null, 2)} label={name} /></dd>
        </div>
      ))}
    </dl>
  );
}

function Alike({ title, approvals }: { title: string; approvals: Approval[] }) {
  if (approvals.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="plain">
        {approvals.map((a) => (
          <li key={a.metadata.name}>
            <Phase phase={stateOf(a)} /> <a href={href(`/approvals/${a.metadata.name}`)}><Text>{a.spec.action || a.spec.taskName}</Text></a>{' '}
            <span class="muted">{ago(a.status?.decisionTime)}{a.status?.decisionActor ? ` by ${a.status.decisionActor}` : ''}{a.status?.decisionReason ? ': ' : ''}<Text>{a.status?.decisionReason}</Text></span>
          </li>
        ))}
      </ul>
    </section>
  );
}
