// An OpenID provider on loopback. Clients are subjects, who get access tokens with their own credentials. It prints its
// address. Each line on standard input is a command, which it repeats when it is done: "rotate" replaces the key.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const claims = {
  'user-1': { preferred_username: 'ann', email: 'ann@example.com', groups: ['dev'], roles: ['r1'], realm_access: { roles: ['r2'] } },
  'user-2': { groups: ['ops'] },
  stranger: { preferred_username: 'ann', groups: ['dev'] },
};
const resources = {
  'urn:platform': { audience: 'platform', accessTokenTTL: 3600 },
  'urn:short': { audience: 'platform', accessTokenTTL: 1 },
  'urn:other': { audience: 'other', accessTokenTTL: 3600 },
};

let handler;
let serial = 0;
const server = createServer((req, res) => handler(req, res));
await new Promise((done) => server.listen(0, '127.0.0.1', done));
const issuer = `http://127.0.0.1:${server.address().port}`;

function make() {
  const kid = `key-${++serial}`;
  const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...key, kid, use: 'sig', alg: 'RS256' }] },
    clients: Object.keys(claims).map((id) => ({
      client_id: id, client_secret: 'secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
      token_endpoint_auth_method: 'client_secret_post',
    })),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, resource) => ({ scope: '', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } }, ...resources[resource] }),
      },
    },
    extraTokenClaims: (_, token) => claims[token.clientId],
  });
  handler = provider.callback();
}

make();
console.log(issuer);
createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'rotate') make();
  console.log(line);
}).on('close', () => process.exit(0));
