// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One approval: exactly what is to be done, who asked, what was decided alike before, and the decision.
import type { Asked } from '../../api/approval';
import { href, taskHref } from '../../router';
import { stateOf, left } from '../../ui/approvaltable';
import { Fact } from '../../ui/eventdetails';
import { clock } from '../../ui/format';
import { Phase } from '../../ui/phase';
import { useSeen } from '../../ui/seen';
import { Exactly } from '../../ui/text';
import { Alike } from './alike';
import { Arguments } from './arguments';
import { Decision } from './decision';
import { Edits, OwnTool } from './owntool';

export function ApprovalDetails({ asked, decided }: { asked: Asked; decided: () => void }) {
  const { approval, args } = asked;
  const { spec, status } = approval;
  const exact = status?.argumentsExact ?? false;
  const seen = useSeen(args);
  return (
    <article class="approval" aria-label="The approval">
      <p><Phase phase={stateOf(approval)} /> <span class="muted">{left(approval)}</span></p>
      <h2><Exactly>{spec.action || `Call ${spec.targetTool ?? 'a tool'}`}</Exactly></h2>
      {spec.riskSummary && <p><Exactly>{spec.riskSummary}</Exactly></p>}
      <OwnTool approval={approval} />
      {exact && args && <Edits args={args} />}
      <h3>Arguments of <Exactly>{spec.targetTool}</Exactly></h3>
      <div ref={seen.box}><Arguments args={args} exact={exact} /></div>
      {stateOf(approval) === 'pending' && <Decision approval={approval} exact={exact} seen={seen} decided={decided} />}
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
      <Alike approval={approval} />
    </article>
  );
}
