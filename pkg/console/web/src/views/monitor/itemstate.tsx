// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What a monitor has found and done about a pull request or issue: the plan that waits, the review, the repair, the merge, and the
// stages of an issue.
import type { ComponentChildren } from 'preact';
import { commandRequest, itemName, planWaits, type Finding, type MonitorItem } from '../../api/monitor';
import { useKeys } from '../../keys';
import { href, location, taskHref } from '../../router';
import { Act } from '../../ui/act';
import { Fact } from '../../ui/eventdetails';
import { ago, count, words } from '../../ui/format';
import { Markdown, webLink } from '../../ui/markdown';
import { Phase } from '../../ui/phase';
import { useSeen } from '../../ui/seen';
import { Empty } from '../../ui/states';
import { Text, visible } from '../../ui/text';
import { Whole } from '../../ui/whole';
import { itemHref } from './about';

export function ItemState({ item }: { item: MonitorItem }) {
  const { review, repair, automerge, issue } = item.status ?? {};
  if (!review && !repair && !automerge && !issue) return <Empty>Nothing was done about it yet.</Empty>;
  return (
    <>
      {issue && <IssueState item={item} issue={issue} />}
      {review && <Review review={review} />}
      {repair && (
        <Part title="Repair" phase={repair.phase} task={repair.taskName} message={repair.message}>
          <Fact name="Head" value={repair.headSHA} />
          <Fact name="Attempts" value={repair.attempts ? count(repair.attempts) : ''} />
        </Part>
      )}
      {automerge && (
        <Part title="Merge" phase={automerge.state} message={automerge.reason}>
          <Fact name="Head" value={automerge.headSHA} />
          <Fact name="Asked for" value={automerge.requested ? 'yes' : ''} />
          <Fact name="Merged as" value={automerge.mergeSHA} />
        </Part>
      )}
    </>
  );
}

interface PartProps {
  title: string;
  phase?: string | undefined;
  task?: string | undefined;
  message?: string | undefined;
  children: ComponentChildren; // facts
}

function Part({ title, phase, task, message, children }: PartProps) {
  return (
    <section aria-label={title}>
      <h2>{title} {phase && <Phase phase={phase} />}</h2>
      {message && <p><Text>{message}</Text></p>}
      <dl class="facts">
        {children}
        {task && <div><dt>Task</dt><dd><a href={taskHref(task)}><Text>{task}</Text></a></dd></div>}
      </dl>
    </section>
  );
}

function Review({ review: r }: { review: NonNullable<NonNullable<MonitorItem['status']>['review']> }) {
  const findings = r.findings ?? [];
  return (
    <>
      <Part title="Review" phase={r.verdict || 'running'} task={r.taskName}>
        <Fact name="Head" value={r.headSHA} />
        <Fact name="Reviewed" value={r.reviewedAt && ago(r.reviewedAt)} />
        <Fact name="Posted" value={r.publishPhase && [words(r.publishPhase), words(r.publishReason ?? '')].filter(Boolean).join(': ')} />
        {r.url && <div><dt>At the code host</dt><dd>{webLink(visible(r.url), 'the review')}</dd></div>}
      </Part>
      {r.summary && <Markdown text={r.summary} />}
      {findings.length > 0 && (
        <section aria-label="Findings">
          <h3>{count(findings.length)} {findings.length === 1 ? 'finding' : 'findings'}</h3>
          <ul class="plain">{findings.map((f, i) => <li key={i}><One finding={f} /></li>)}</ul>
        </section>
      )}
    </>
  );
}

function One({ finding: f }: { finding: Finding }) {
  return (
    <>
      <strong><Text>{[f.priority, f.title].filter(Boolean).join(' ')}</Text></strong> <code><Text>{[f.path, f.line].filter(Boolean).join(':')}</Text></code>
      {f.body && <Markdown text={f.body} />}
    </>
  );
}

function IssueState({ item, issue }: { item: MonitorItem; issue: NonNullable<NonNullable<MonitorItem['status']>['issue']> }) {
  const { monitorName } = item.spec;
  const pull = { monitorName, targetKind: 'pull_request' as const, number: issue.pullRequest ?? 0 };
  return (
    <>
      <Part title="Work on the issue" phase={issue.phase} task={issue.taskName}>
        <Fact name="Risk" value={issue.risk} />
        <Fact name="Plan approved by" value={issue.planApprovedBy} />
        <Fact name="Attempts" value={issue.attempts ? count(issue.attempts) : ''} />
        <Fact name="Branch" value={issue.branch} />
        {issue.pullRequest && <div><dt>Pull request</dt><dd><a href={itemHref(pull)} title={itemName(pull)}>#{issue.pullRequest}</a></dd></div>}
        {issue.phase === 'blocked' && <div><dt>Why</dt><dd><a href={href(location.value.path, { tab: 'work' })}>See its work</a></dd></div>}
      </Part>
      {issue.plan && (planWaits(item) ? <Plan item={item} plan={issue.plan} /> : <section aria-label="Plan"><h2>Plan</h2><Markdown text={issue.plan} /></section>)}
      {issue.research && <section aria-label="Research"><h2>Research</h2><Markdown text={issue.research} /></section>}
      {issue.triage && <section aria-label="Triage"><h2>Triage</h2><Markdown text={issue.triage} /></section>}
    </>
  );
}

// Plan is a plan that waits for an approval: all of it, exactly. It can be approved of once it was seen.
function Plan({ item, plan }: { item: MonitorItem; plan: string }) {
  const seen = useSeen(plan);
  const left = seen.left.value;
  useKeys([{ key: 'y', label: 'Approve of the plan, or show its next part; Enter confirms', run: () => {
    if (left > 0) return seen.next();
    const button = seen.box.current?.parentElement?.querySelector<HTMLButtonElement>('button[data-choice=y]');
    button?.focus();
    return button ? undefined : false;
  } }]);
  const approve = {
    title: 'Approve the plan', sub: 'commands', kind: 'MonitorCommandRequest', body: commandRequest(item, 'approve_plan'), key: 'y' as const, primary: true, disabled: left !== 0,
    asks: 'Approve of this plan? It may be carried out then.', done: 'The approval was given.',
  };
  return (
    <section class="approval" aria-label="Plan that waits for an approval">
      <h2>Plan that waits for an approval</h2>
      <div ref={seen.box}><Whole text={plan} label="Plan" /></div>
      <Act resource="repositorymonitors" name={item.spec.monitorName} actions={[approve]} />
      {left > 0 && <p class="actions"><button type="button" onClick={seen.next}>Show the next part <kbd>y</kbd></button> <span class="muted small" role="status">To approve this, look at all of it: {left === 1 ? 'one part was' : `${left} parts were`} not in view.</span></p>}
    </section>
  );
}
