// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Accounts that people link. Only the REST API answers here: it knows person and namespace by the token of the session.
import { get, post, send } from './client';

export type Mode = 'readOnly' | 'readWrite';

// Connector is a service at which people have accounts, and what may be done there.
export interface Connector {
  name: string;
  namespace: string;
  displayName: string;
  ready: boolean;
  scopes: { read: string[]; write: string[] };
  tools: Array<{ name: string; class: string }>;
}

// Connection is the viewer's account at a connector.
export interface Connection {
  name: string;
  provider: string; // the connector
  mode: Mode;
  state: string; // Pending, Ready, Expired, Revoked or Error
  ready: boolean; // whether it can be used now; if not, message says why
  message: string;
  grantedScopes: string[];
  linkedAt?: string;
  expiresAt?: string; // of the access token
  lastRefreshTime?: string;
}

export interface Linked {
  connectors: Connector[];
  connections: Connection[];
}

// Begun is a consent that was begun; without an address none is needed.
export interface Begun {
  connection: Connection;
  authorizeURL?: string;
}

const all = '/api/v1/connections';
const one = (name: string) => `${all}/${encodeURIComponent(name)}`;

export async function linked(signal: AbortSignal): Promise<Linked> {
  const [connectors, connections] = await Promise.all([get<{ items: Connector[] }>('/api/v1/connectors', signal), get<{ items: Connection[] }>(all, signal)]);
  return { connectors: connectors.items, connections: connections.items };
}

export const connect = (provider: string, mode: Mode) => post<Begun>(all, { provider, mode });

// connectAgain asks for another consent, for the mode that the connection has.
export const connectAgain = async (name: string) => (await (await send(`${one(name)}/authorize`, { method: 'POST' })).json()) as Begun;

// changeMode changes at once what the account may be used for. A consent is begun if what was granted does not cover that.
export const changeMode = async (name: string, mode: Mode) => (await (await send(one(name), { method: 'PUT', body: { mode } })).json()) as Begun;

export const disconnect = (name: string) => send(one(name), { method: 'DELETE' });

// complete ends a consent with the token that the browser came back with.
export const complete = (name: string, completion: string) => post<Connection>(`${one(name)}/complete`, { completion });

// consentAt opens the page of a provider, where people give their consent.
export function consentAt(address: string): void {
  if (!address.startsWith('https://') || !URL.canParse(address)) throw new Error('The server named an address for the consent that is not https. It was not opened.');
  window.location.assign(address);
}
