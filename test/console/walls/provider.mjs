// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// An OpenID provider on loopback, with the client "console", whose redirect URI is REDIRECT. It prints its address, and ends
// with its standard input. Everybody who names a subject is that subject.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';

const { default: Provider } = await import(new URL('../../identity/npm/node_modules/oidc-provider/lib/index.js', import.meta.url));
let handler;
const server = createServer((req, res) => handler(req, res));
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
handler = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid: 'key', use: 'sig', alg: 'RS256' }] },
  clients: [{ client_id: 'console', client_secret: 'a secret/with+signs', redirect_uris: [process.env.REDIRECT], response_types: ['code'], grant_types: ['authorization_code'] }],
  pkce: { required: () => true },
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id.split('-')[0], groups: ['dev'] }) }),
  cookies: { keys: ['not a secret'] },
}).callback();
console.log(issuer);
process.stdin.resume().on('close', () => process.exit(0));
