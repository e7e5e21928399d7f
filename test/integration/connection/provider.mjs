// An OAuth provider on loopback: oidc-provider, unmodified, with the pages of its quick start. It believes that it is behind a proxy that
// ends TLS. CLIENT in its environment is the client that it knows, as JSON, and ISSUER its public address. It prints its own address.
import { createServer } from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from '../../identity/npm/node_modules/oidc-provider/lib/index.js';

const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const provider = new Provider(process.env.ISSUER, {
  jwks: { keys: [{ ...key, use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['a-key-of-a-test'] },
  clients: [JSON.parse(process.env.CLIENT)],
  scopes: ['read', 'write'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: () => true,
  features: {
    devInteractions: { enabled: true }, introspection: { enabled: true }, revocation: { enabled: true }, resourceIndicators: { enabled: false },
  },
});
provider.proxy = true;
const server = createServer(provider.callback());
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on('end', () => process.exit(0));
