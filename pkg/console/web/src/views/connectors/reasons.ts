// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// What the callback of a consent says in the address if nothing was linked, in sentences: what happened, and what to do.

const tell = 'If it happens again, tell whoever administers the connector.';

const reasons: Record<string, string> = {
  invalid_state: 'This answer does not belong to a consent that waits for one: it was used before, a newer consent replaced it, or it was not begun here. Connect again. If somebody sent you here, do nothing.',
  consent_expired: 'You took longer than 10 minutes to come back, so the consent does not count any more. Connect again.',
  storage_failed: `The server could not keep what the provider sent. Wait a few minutes, and connect again. ${tell}`,
  access_denied: 'You did not agree at the provider. Connect again if you change your mind.',
  provider_rejected: `The provider refused to ask you, or the answer did not come from it. Connect again. ${tell}`,
  missing_code: `The provider sent you back without the code that it should give. Connect again. ${tell}`,
  connection_missing: 'The connection was removed while you were at the provider. Connect again.',
  connection_unprotected: `The connection is damaged: its tokens would be left behind when it is removed. Disconnect it, and connect again. ${tell}`,
  connection_mismatch: `The connection is not the one that the consent was begun for. Connect again. ${tell}`,
  provider_unavailable: 'The connector cannot be used now: it is gone, is not ready, or its secret cannot be read. Tell whoever administers the connector, and connect again when it is ready.',
  provider_changed: 'The connector was changed while you were at the provider. Look at what it asks for now, and connect again.',
  mode_changed: 'What the account may be used for was changed while you were at the provider. Connect again.',
  exchange_failed: `The provider gave the server no tokens for your consent. Connect again. ${tell}`,
  scopes_denied: 'The provider granted less than was asked for. Connect again and agree to all of it, or connect read only.',
  consent_superseded: 'You gave a newer consent meanwhile, and that one counts. If your account is ready, there is nothing to do.',
  disconnected: 'The account was disconnected while you were at the provider. Connect again if you want it back.',
};

// because returns the sentences of a reason. An address can name any reason, so one that is not known is not repeated.
export function because(reason: string): string {
  return Object.hasOwn(reasons, reason) ? (reasons[reason] ?? '') : `The consent failed for a reason that this page does not know. Connect again. ${tell}`;
}
