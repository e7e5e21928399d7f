// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// One connector, and the viewer's account there.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { explain } from '../../api/client';
import { changeMode, connect, connectAgain, consentAt, disconnect, type Begun, type Connection, type Connector, type Mode } from '../../api/connector';
import { Fact } from '../../ui/eventdetails';
import { clock } from '../../ui/format';
import { Phase } from '../../ui/phase';
import { Question } from '../../ui/question';
import { Text, visible } from '../../ui/text';
import { outcome } from './comeback';

const modes: Record<Mode, string> = { readOnly: 'read only', readWrite: 'read and write' };
const other: Record<Mode, Mode> = { readOnly: 'readWrite', readWrite: 'readOnly' };

// hints are what to do about a state.
const hints: Record<string, string> = {
  Pending: 'Connect again to give your consent.',
  Expired: 'The access has ended, and the provider gave nothing to renew it with. Connect again.',
  Revoked: 'The provider does not honour your consent any more. Connect again.',
};

interface Props {
  connector: Connector | undefined; // undefined if it is gone
  connection: Connection | undefined;
  leaving: boolean; // whether the account is being disconnected
  left: (name: string) => void; // is told that it is
  changed: () => void;
}

export function Account({ connector, connection, leaving, left, changed }: Props) {
  const title = connector?.displayName || connection?.provider || '';
  const write = connector?.tools.filter((t) => t.class !== 'read') ?? [];
  const read = connector?.tools.filter((t) => t.class === 'read') ?? [];
  const names = (tools: Connector['tools']) => tools.map((t) => t.name).join(', ') || 'none';
  return (
    <article class="turn" data-step tabIndex={-1} aria-label={visible(title)}>
      <div class="title">
        <h2><Text>{title}</Text></h2>
        {connection ? <Phase phase={leaving ? 'Disconnecting' : connection.state === 'Pending' ? 'WaitingForConsent' : connection.state} /> : <span class="phase idle">Not connected</span>}
      </div>
      {!connector && <p class="notice bad">This connector does not exist any more. You can only disconnect the account.</p>}
      {connector && !connector.ready && <p class="notice bad">This connector cannot be used now. Whoever administers it has to put it right.</p>}
      {connection && !connection.ready && !leaving && <p class="notice"><Text>{[connection.message && sentence(connection.message), hints[connection.state]].filter(Boolean).join(' ')}</Text></p>}
      <dl class="facts">
        {connector && <Fact name="Connector" value={connector.ready ? 'ready' : 'not ready'} />}
        {connector && <Fact name="Scopes to read" value={connector.scopes.read.join(', ') || 'none'} />}
        {connector && <Fact name="More scopes to write" value={connector.scopes.write.join(', ') || 'none'} />}
        {connector && <Fact name="Tools that read" value={names(read)} />}
        {connector && <Fact name="Tools that write" value={names(write) + (write.length ? '; each call needs an approval' : '')} />}
      </dl>
      {connection && (
        <dl class="facts">
          <Fact name="Your account is for" value={modes[connection.mode]} />
          <Fact name="Granted" value={connection.grantedScopes.join(', ')} />
          {connection.linkedAt && <Fact name="Linked" value={clock(connection.linkedAt)} />}
          {connection.expiresAt && <Fact name="Access ends, unless it is renewed" value={clock(connection.expiresAt)} />}
          {connection.lastRefreshTime && <Fact name="Renewed" value={clock(connection.lastRefreshTime)} />}
        </dl>
      )}
      {!leaving && <Buttons title={title} ready={connector?.ready ?? false} provider={connector?.name ?? ''} connection={connection} left={left} changed={changed} />}
    </article>
  );
}

// sentence makes the message of a condition a sentence.
const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

function Buttons({ title, ready, provider, connection, left, changed }: { title: string; ready: boolean; provider: string } & Pick<Props, 'connection' | 'left' | 'changed'>) {
  const busy = useSignal(false);
  const asked = useSignal(false);
  const problem = useSignal('');
  useEffect(() => {
    const back = () => (busy.value = false); // from the provider, without another load
    window.addEventListener('pageshow', back);
    return () => window.removeEventListener('pageshow', back);
  }, []);
  const run = async (act: () => Promise<Begun | null>) => {
    busy.value = true;
    asked.value = false;
    problem.value = '';
    outcome.value = null;
    try {
      const begun = await act();
      if (begun?.authorizeURL) return consentAt(begun.authorizeURL); // the browser leaves
      changed();
    } catch (e) {
      problem.value = explain(e);
      changed();
    }
    busy.value = false;
  };
  const button = (text: string, act: () => Promise<Begun | null>, primary = false) => <button type="button" class={primary ? 'primary' : ''} disabled={busy.value || !ready} onClick={() => void run(act)}>{text}</button>;
  const gone = async (name: string) => {
    await disconnect(name);
    left(name);
    return null;
  };
  return (
    <>
      {asked.value && connection
        ? <Question text={`Disconnect your account at ${visible(title)}? Agents cannot use it any more then, and its tokens are revoked if the provider supports that.`} verb="Disconnect" go={() => void run(() => gone(connection.name))} close={() => (asked.value = false)} />
        : (
          <div class="tools">
            {connection ? (
              <>
                {button('Connect again', () => connectAgain(connection.name), !connection.ready)}
                {button(`Change to ${modes[other[connection.mode]]}`, () => changeMode(connection.name, other[connection.mode]))}
                <button type="button" disabled={busy.value} onClick={() => (asked.value = true)}>Disconnect …</button>
              </>
            ) : (
              <>
                {button('Connect, read only', () => connect(provider, 'readOnly'), true)}
                {button('Connect, read and write', () => connect(provider, 'readWrite'))}
              </>
            )}
          </div>
        )}
      {problem.value && <p class="notice bad" role="alert"><Text>{problem.value}</Text></p>}
    </>
  );
}
