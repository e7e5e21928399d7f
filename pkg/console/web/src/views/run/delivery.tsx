// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What became of what a run changed in its repository: where it is now, the steps on the way, and what to do if it is not delivered.
import { get, inNamespace, query } from '../../api/client';
import { useLoad } from '../../api/load';
import { why } from '../../api/told';
import type { Delivery, EventPage, Task } from '../../api/types';
import { taskHref } from '../../router';
import { Fact } from '../../ui/eventdetails';
import { clock, duration, words } from '../../ui/format';
import { webLink } from '../../ui/markdown';
import { Notice } from '../../ui/states';
import { Text, visible } from '../../ui/text';

export function RunDelivery({ name, task, delivery: d }: { name: string; task: Task; delivery: Delivery }) {
  const { gitRepo, publicationGitRepo } = task.spec.workspace ?? {};
  const repository = publicationGitRepo ?? gitRepo;
  const { message } = why(task); // which the summary of the run shows
  const next = nextStep(task, d, repository);
  return (
    <section aria-label="Delivery">
      {next && <p class="notice"><Text>{next}</Text></p>}
      <dl class="facts">
        <Fact name="Delivery" value={d.state && words(d.state)} />
        <Fact name="Published to" value={repository} />
        <Fact name="Branch" value={d.branch} />
        {d.prReceipt && <PullRequest of={d.prReceipt} />}
      </dl>
      {d.message && !message.includes(d.message) && <p><Text>{d.message}</Text></p>}
      <dl class="facts commits">
        <Fact name="Run began with" value={d.startingSHA} />
        <Fact name="Branch was at" value={d.remoteBeforeSHA === '' ? 'no commit: there was no such branch' : d.remoteBeforeSHA} />
        <Fact name="Commit" value={d.expectedCommitSHA} />
        <Fact name="Its tree" value={d.treeSHA} />
        <Fact name="Seen at" value={d.verifiedRemoteSHA} />
        <Fact name="Went on to" value={d.supersedingRemoteSHA} />
      </dl>
      <Steps name={name} state={d.state} />
    </section>
  );
}

function PullRequest({ of: r }: { of: NonNullable<Delivery['prReceipt']> }) {
  const title = r.number ? `#${r.number}` : visible(r.id);
  return (
    <div>
      <dt>Pull request</dt>
      <dd>{r.url ? webLink(visible(r.url), title) : title} <Text>{[r.state, r.baseBranch && `to ${r.baseBranch}`].filter(Boolean).join(', ')}</Text></dd>
    </div>
  );
}

// nextStep says what somebody can do about changes that were not delivered; empty if nothing has to be done.
function nextStep(task: Task, d: Delivery, repository: string | undefined): string {
  const own = 'The changes of this run are below.';
  switch (d.state) {
    case 'DeliveryConflict':
      switch (why(task).reason) {
        case 'PublicationRefused':
          return `Nothing was published. The changes, or the push, were refused for the reason above. ${own} Run the task again with another prompt or with other limits, or once the server accepts the push.`;
        case 'RepositoryUnreachable':
          return `Nothing was published, because the server could not be asked. ${own} Run the task again when it answers.`;
        default:
          return `Nothing was overwritten: the branch is elsewhere, as the message above says. ${own} Merge them yourself, or run the task again from where the branch is, or with another branch.`;
      }
    case 'CredentialBlocked':
      return `Nothing was published. Mend the Secret that the message above names, then run the task again. ${own}`;
    case 'PublicationOutcomeUnknown':
      return `It is not known whether the branch was moved. Look at branch ${d.branch ?? ''} of ${repository ?? 'the repository'}: if it is at commit ${d.expectedCommitSHA ?? ''}, or went on from it, everything is there. If not, run the task again.`;
    default:
      if (task.status?.phase !== 'Failed' || why(task).reason !== 'PullRequestNotOpened') return '';
      return 'The branch is published, but has no pull request. Open one yourself, or see the message above for what kept the platform from it.';
  }
}

const meaning: Record<string, string> = {
  Validating: 'look where the branch is',
  Preparing: 'make a commit of the changes',
  Prepared: 'the commit is made, and nobody has it yet',
  Publishing: 'ask the server to move the branch to the commit',
  Verifying: 'read where the branch is now, which decides how the task ends',
};

// Steps are the states that the delivery went through, each from the event that was stored before it began.
function Steps({ name, state }: { name: string; state: string | undefined }) {
  const path = query(inNamespace('tasks', name, 'events'), { type: 'DeliveryStateChanged', limit: 200 });
  const { data, error } = useLoad(`${path} ${state}`, (signal) => get<EventPage>(path, signal), 0, path);
  const events = data.value?.events ?? [];
  if (events.length === 0) return <Notice error={error.value} />;
  return (
    <ol class="steps" aria-label="Steps of the delivery">
      {events.map((e, i) => {
        const to = String(e.content?.to ?? '');
        const took = i > 0 ? Date.parse(e.createdAt) - Date.parse(events[i - 1]?.createdAt ?? '') : 0;
        return (
          <li key={e.seq}>
            <span class="muted">{clock(e.createdAt)}</span> <a href={taskHref(name, e.seq)}><Text>{words(to)}</Text></a>{' '}
            <span class="muted">{[meaning[to], i > 0 && `after ${duration(took)}`].filter(Boolean).join(', ')}</span>
          </li>
        );
      })}
    </ol>
  );
}
