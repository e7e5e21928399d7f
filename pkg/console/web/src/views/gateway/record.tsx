// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What somebody wrote in a conversation, and what goes back, each with what became of it.
import type { ComponentChildren } from 'preact';
import type { Delivery, GatewayEvent } from '../../api/gateway';
import { taskHref } from '../../router';
import { Act } from '../../ui/act';
import { Fact } from '../../ui/eventdetails';
import { clock, count, words } from '../../ui/format';
import { Long } from '../../ui/long';
import { Phase } from '../../ui/phase';
import { Text } from '../../ui/text';
import { because, conversationHref, failed, placeOf, replays, steps, uncertain } from './about';

const first = 2000; // characters of a text

interface Props {
  named: string;
  what: ComponentChildren; // what it is, or who wrote it
  record: GatewayEvent | Delivery;
  alone: boolean; // whether it is shown outside of its conversation
  session: string | undefined;
  task: string | undefined;
  why: string;
  children: ComponentChildren; // facts
}

// One is a record: what is said, and what is known of it.
function One({ named, what, record: r, alone, session, task, why, children }: Props) {
  const { spec, status } = r;
  const bad = failed(r);
  return (
    <>
      <div class="title"><h2>{what} <time dateTime={spec.createdAt}>{clock(spec.createdAt)}</time></h2><Phase phase={status?.state ?? 'Pending'} /></div>
      <Long text={spec.text} label={named} first={first} />
      {why && <p class={bad ? 'notice bad' : 'muted'}><Text>{why}</Text></p>}
      <dl class="facts">
        {alone && <div><dt>Conversation</dt><dd>{session ? <a href={conversationHref(spec.gatewayName, session)}><Text>{placeOf(spec)}</Text></a> : <Text>{placeOf(spec)}</Text>}</dd></div>}
        {alone && <Fact name="Gateway" value={spec.gatewayName} />}
        {task && <div><dt>Task</dt><dd><a href={taskHref(task)}><Text>{task}</Text></a></dd></div>}
        {children}
      </dl>
    </>
  );
}

// times says how often something happened, if it did.
const times = (n: number | undefined, by?: string) => (n ? `${count(n)} ${n === 1 ? 'time' : 'times'}${by ? `, last by ${by}` : ''}` : '');

export function Written({ event, alone = false }: { event: GatewayEvent; alone?: boolean }) {
  const { metadata, spec, status: s = {} } = event;
  const shown = spec.senderDisplayName;
  const d = s.decision;
  return (
    <article class={`turn ${failed(event) ? 'failed bad' : ''}`} data-step tabIndex={-1} aria-label={`Event ${metadata.name}`}>
      <One
        named="What was written" record={event} alone={alone} session={s.sessionName} task={s.taskName} why={because(s.reason === 'Answered' ? '' : s.reason, s.stateMessage)}
        what={<><strong><Text>{spec.senderId}</Text></strong>{shown && <span class="muted" title="Anybody can choose this name. Nothing is decided by it."> shown as “<Text>{shown}</Text>”, unverified</span>}</>}
      >
        <Fact name="Agent" value={s.agentName} />
        <Fact name="Binding" value={s.bindingName} />
        {s.state === 'Queued' && (s.attemptCount ?? 0) > 0 && s.nextAttemptAt && <Fact name="Tried again" value={clock(s.nextAttemptAt)} />}
        <Fact name="Delivered again" value={times(s.duplicates)} />
        <Fact name="With another text, refused" value={times(s.mismatches)} />
        <Fact name="Replayed" value={times(s.replays, s.replayedBy)} />
        {d && <Fact name="Decides on an approval" value={`${d.decision} ${d.approval || d.code}${d.subject ? `, in the name of ${d.subject}` : ''}`} />}
        <Fact name="Id in the chat" value={spec.externalEventId} />
      </One>
      <Act resource="gatewayevents" name={metadata.name} actions={replays(event)} />
    </article>
  );
}

const kinds: Record<string, string> = { final: 'Answer', error: 'Why there is no answer', interim: 'Said meanwhile' };

export function Sent({ delivery, alone = false }: { delivery: Delivery; alone?: boolean }) {
  const { metadata, spec, status: s = {} } = delivery;
  const open = s.state === 'Pending' || s.state === 'RetryScheduled';
  return (
    <article class={`turn ${alone ? '' : 'reply'} ${failed(delivery) ? 'failed bad' : ''}`} data-step tabIndex={-1} aria-label={`Delivery ${metadata.name}`}>
      <One named="What is posted" record={delivery} alone={alone} session={spec.sessionName} task={alone ? spec.taskName : ''} what={<strong><Text>{kinds[spec.kind] ?? words(spec.kind)}</Text></strong>} why={s.state === 'Delivered' ? '' : because(s.reason, s.lastError)}>
        <Fact name="Sent" value={`${count(s.attemptCount ?? 0)} of ${times(spec.maxAttempts) || '–'}`} />
        <Fact name="Adapter not reached" value={times(s.unreachedCount)} />
        {open && s.nextAttemptAt && <Fact name="Next attempt" value={clock(s.nextAttemptAt)} />}
        {open && s.expiresAt && <Fact name="Expires" value={clock(s.expiresAt)} />}
        <Fact name="Late" value={s.late ? 'sent with a line that says when it was written' : ''} />
        <Fact name="Retried" value={times(s.manualRetryCount, s.retriedBy)} />
        {s.deliveredAt && <Fact name="Delivered" value={clock(s.deliveredAt)} />}
        <Fact name="Id in the chat" value={s.providerMessageId} />
      </One>
      {uncertain(delivery) && <p class="notice">It may have been posted: it was sent, and no answer came.</p>}
      <Act resource="gatewaydeliveries" name={metadata.name} actions={steps(delivery)} />
    </article>
  );
}
