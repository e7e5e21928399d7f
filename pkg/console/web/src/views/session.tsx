// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One conversation: what was said, the answer as it is given, and a field to go on.
import { useEffect, useMemo } from 'preact/hooks';
import { get, inNamespace } from '../api/client';
import type { Session } from '../api/kinds';
import { useList } from '../api/list';
import { useLoad } from '../api/load';
import { may } from '../api/may';
import type { EventCounts } from '../api/overview';
import { Conversation } from '../api/transcript';
import { href, taskHref } from '../router';
import { Fact } from '../ui/eventdetails';
import { ago, count } from '../ui/format';
import { Empty, Failure, Loading } from '../ui/states';
import { useSteps } from '../ui/steps';
import { Text } from '../ui/text';
import { Composer } from './session/composer';
import { Answer, Said } from './session/message';

export function SessionView({ params }: { params: Record<string, string> }) {
  const name = params.name ?? '';
  // The address of a new conversation changes with its first answer. The view stays, since it receives that answer.
  const talk = useMemo(() => new Conversation(name, (made) => history.replaceState(null, '', href(`/sessions/${encodeURIComponent(made)}`))), []);
  const { items, error, loading } = useList<Session>(name ? inNamespace('sessions') : '', { fieldSelector: `metadata.name=${name}` });
  const session = items.value.find((s) => s.metadata.name === name);
  useEffect(() => () => talk.stop(), []);
  const added = session?.status?.messageCount ?? 0;
  const chat = !name || session?.spec.sessionType === 'chat';
  useEffect(() => {
    if (!talk.busy.value) void talk.load();
  }, [added]);
  useEffect(() => {
    if (name && chat) void talk.attach();
  }, [chat]);

  const box = useSteps<HTMLDivElement>('message');
  const { messages, steps } = talk;
  const last = messages.value.length + steps.value.length;
  useEffect(() => {
    const end = document.documentElement;
    if (end.scrollHeight - end.scrollTop - end.clientHeight < 400) window.scrollTo(0, end.scrollHeight);
  }, [last, talk.steps.value]);

  const title = <div class="title"><h1>{name ? <Text>{name}</Text> : 'New chat'}</h1></div>;
  if (name && !session && error.value) return <>{title}<Failure error={error.value} /></>;
  if (name && !session && !loading.value) return <>{title}<Empty>There is no session of this name in the namespace. <a href={href('/sessions')}>Show all sessions.</a></Empty></>;
  const allowed = may('create', 'chats');
  return (
    <>
      {title}
      {session && <Summary session={session} />}
      <div ref={box} class="transcript">
        {talk.truncated.value && <p class="notice">The oldest messages were removed, because a session has a largest size.</p>}
        {talk.older.value && <p class="more"><button type="button" onClick={() => void talk.before()}>Show earlier messages</button></p>}
        {talk.error.value ? <Failure error={talk.error.value} retry={() => void talk.load()} /> : talk.loading.value && <Loading what="the messages" />}
        {allowed === false && chat && <p class="muted">Your role does not permit you to chat.</p>}
        {!name && allowed && messages.value.length === 0 && !talk.question.value && <Empty>Ask for something to be done. The model creates tasks and follows them with your permissions, and no others.</Empty>}
        {name && !talk.loading.value && messages.value.length === 0 && !talk.question.value && <Empty>Nothing was said yet.</Empty>}
        {messages.value.map((m) => <Said key={m.order ?? m.id} message={m} />)}
        <Answer talk={talk} />
        {chat && allowed && <Composer talk={talk} />}
        {!chat && <p class="muted">The messages of this session are those of tasks. A task continues it with <code>spec.sessionRef</code>.</p>}
      </div>
    </>
  );
}

function Summary({ session }: { session: Session }) {
  const path = inNamespace('sessions', session.metadata.name, 'events', 'counts');
  const events = useLoad(may('get', 'sessions/events') ? path : '', (signal) => get<EventCounts>(path, signal), 30_000).data.value;
  const { activeTask, waitingCount, messageCount, inputTokens, outputTokens, updatedAt } = session.status ?? {};
  return (
    <dl class="facts">
      <Fact name="Type" value={session.spec.sessionType ?? 'task'} />
      {activeTask && <div><dt>Task at work</dt><dd><a href={taskHref(activeTask)}><Text>{activeTask}</Text></a></dd></div>}
      <Fact name="Waiting tasks" value={waitingCount ? count(waitingCount) : ''} />
      <Fact name="Messages" value={count(messageCount)} />
      <Fact name="Tokens in / out" value={inputTokens === undefined && outputTokens === undefined ? 'Unavailable' : `${count(inputTokens)} / ${count(outputTokens)}`} />
      <Fact name="Events of its tasks" value={events?.total ? count(events.total) : ''} />
      <Fact name="Errors among them" value={events?.severities.error ? count(events.severities.error) : ''} />
      <Fact name="Changed" value={ago(updatedAt)} />
    </dl>
  );
}
