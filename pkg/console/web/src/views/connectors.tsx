// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Accounts of the viewer at other services: which there can be, which are linked, and what they may be used for.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, explain } from '../api/client';
import { linked } from '../api/connector';
import { useLoad } from '../api/load';
import { user } from '../api/session';
import { namespace } from '../router';
import { Empty, Failure, Loading, Notice } from '../ui/states';
import { useSteps } from '../ui/steps';
import { Text } from '../ui/text';
import { Account } from './connectors/account';
import { ComeBack, outcome } from './connectors/comeback';

const often = 1000; // ms; while an account is being disconnected
const seldom = 15_000;

export function Connectors() {
  const leaving = useSignal<string[]>([]);
  const { data, error, loading, reload } = useLoad('connectors', linked, leaving.value.length > 0 ? often : seldom);
  const box = useSteps<HTMLDivElement>('connector');
  const known = data.value;
  const said = outcome.value;
  useEffect(() => {
    if (said?.good) reload();
  }, [said]);
  useEffect(() => {
    const left = leaving.peek().filter((name) => known?.connections.some((c) => c.name === name));
    if (left.length < leaving.peek().length) leaving.value = left;
  }, [known]);
  const orphans = known?.connections.filter((c) => !known.connectors.some((p) => p.name === c.provider)) ?? [];
  const rows = [...(known?.connectors ?? []).map((connector) => ({ connector, connection: known?.connections.find((c) => c.provider === connector.name) })), ...orphans.map((connection) => ({ connector: undefined, connection }))];
  const elsewhere = known?.connectors.find((c) => c.namespace !== namespace())?.namespace;
  return (
    <>
      <div class="title"><h1>Connectors</h1></div>
      <ComeBack />
      {!known && !said?.login && (error.value ? <Unavailable error={error.value} retry={reload} /> : loading.value && <Loading what="connectors" />)}
      {known && (
        <>
          <Notice error={error.value} />
          <p class="muted">Accounts of your own at other services, which you may link so that agents can use them for you. The server keeps the tokens, and shows them to nobody.</p>
          {elsewhere && <p class="muted">They are those of namespace <Text>{elsewhere}</Text>, which is yours.</p>}
          {rows.length === 0 && <Empty>There are no connectors in your namespace yet. An administrator creates a <code>ConnectorProvider</code> for each service.</Empty>}
          <div ref={box}>
            {rows.map(({ connector, connection }) => (
              <Account
                key={connector?.name ?? connection?.name} connector={connector} connection={connection} leaving={leaving.value.includes(connection?.name ?? '')}
                left={(name) => (leaving.value = [...leaving.peek(), name])} changed={reload}
              />
            ))}
          </div>
        </>
      )}
    </>
  );
}

// Unavailable says why there are no connectors here, as far as it is no accident.
function Unavailable({ error, retry }: { error: unknown; retry: () => void }) {
  switch (error instanceof ApiError ? error.code : 0) {
    case 501:
      return <Empty>This server has no connectors, so no accounts can be linked. Its operator can switch them on with <code>--connectors-enabled</code>.</Empty>;
    case 404:
      return <Empty>The API that this page uses does not have connectors. Open the console of the platform's own server.</Empty>;
    case 403:
      return (
        <div class="state problem" role="alert">
          <p>Accounts belong to people, and you are signed in as <Text>{user.value || 'somebody'}</Text>, with a credential that names no person, such as that of a ServiceAccount. Sign out, and sign in with your identity provider.</p>
          <p class="muted">{explain(error)}</p>
        </div>
      );
  }
  return <Failure error={error} retry={retry} />;
}
