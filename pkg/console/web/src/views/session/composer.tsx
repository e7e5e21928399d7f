// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The field for the next message of a chat.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { get, inNamespace } from '../../api/client';
import type { Entry } from '../../api/kinds';
import { useLoad } from '../../api/load';
import { may } from '../../api/may';
import type { Conversation } from '../../api/transcript';
import type { List } from '../../api/types';
import { useKeys } from '../../keys';
import { visible } from '../../ui/text';

// chosen is kept as long as the tab: a turn names its Provider, and a session does not remember one.
const chosen = signal<string | null>(null);

export function Composer({ talk }: { talk: Conversation }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const background = useSignal(false);
  useKeys([{ key: 'i', label: 'Write a message', run: () => field.current?.focus() }]);
  const send = (e: Event) => {
    e.preventDefault();
    const text = field.current?.value.trim() ?? '';
    if (!text || talk.busy.value || !field.current) return;
    const input = field.current;
    input.value = '';
    void talk.say(text, background.value, chosen.value ?? '').then(() => {
      if (talk.problem.value && !input.value) input.value = text; // to be sent again
    });
  };
  const enter = (e: KeyboardEvent) => {
    if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) send(e);
  };
  return (
    <form class="composer" onSubmit={send}>
      <label for="message" class="unseen">Message</label>
      <textarea id="message" ref={field} rows={3} maxLength={262144} placeholder="Write a message" onKeyDown={enter} aria-describedby="message-keys" />
      <div class="tools">
        <Providers />
        <label class="check"><input type="checkbox" checked={background.value} onChange={(e) => (background.value = e.currentTarget.checked)} /> Go on when I leave</label>
        <span id="message-keys" class="muted small">Enter sends, Shift+Enter begins a line</span>
        {talk.busy.value && (!talk.background.value || (talk.name && may('create', 'sessions/cancel'))) && <button type="button" onClick={() => void talk.cancel()}>Cancel</button>}
        <button type="submit" class="primary" disabled={talk.busy.value}>Send</button>
      </div>
    </form>
  );
}

// Providers offers who may answer. Without the right to list them, the server's choice is the only one.
function Providers() {
  const { data } = useLoad('providers', (signal) => get<List<Entry>>(inNamespace('providers'), signal));
  const items = data.value?.items ?? [];
  const names = items.map((p) => p.metadata.name);
  useEffect(() => {
    // Where nothing else is configured, the server's choice is the Provider "default".
    if (chosen.value === null && names.length > 0) chosen.value = names.includes('default') ? '' : (items.find((p) => p.status?.ready)?.metadata.name ?? '');
  }, [names.join()]);
  if (names.length === 0) return null;
  return (
    <label class="field">Provider
      <select value={chosen.value ?? ''} onChange={(e) => (chosen.value = e.currentTarget.value)}>
        <option value="">the server's choice</option>
        {names.map((name) => <option key={name} value={name}>{visible(name)}</option>)}
      </select>
    </label>
  );
}
