// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

type object = map[string]any

// issuer makes tokens of both kinds with any claims, which a real provider does not.
type issuer struct {
	*httptest.Server

	t   *testing.T
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Use: "sig", Algorithm: "RS256"}}})
	}))
	t.Cleanup(i.Close)
	return i
}

// options accept tokens of both kinds for namespace team.
func (i *issuer) options(mode string) external.Options {
	return external.Options{
		OIDC:         external.OIDC{Issuer: i.URL, Audience: "platform", JWKSURL: i.URL, AllowedSubjects: []string{"user-*"}, Namespace: "team"},
		ContextToken: external.ContextToken{Profile: external.ProfileTransactionToken, Issuer: i.URL, Audience: "platform", JWKSURL: i.URL, Mode: mode},
	}
}

// token returns an access token; changes replace claims.
func (i *issuer) token(subject string, changes ...object) string {
	return i.sign("at+jwt", subject, changes)
}

// transaction returns a transaction token.
func (i *issuer) transaction(subject string, changes ...object) string {
	claims := object{"txn": "txn-1", "scope": "platform:tasks:create", "req_wl": "gateway"}
	return i.sign("txntoken+jwt", subject, append([]object{claims}, changes...))
}

func (i *issuer) sign(typ jose.ContentType, subject string, changes []object) string {
	i.t.Helper()
	now := time.Now()
	claims := object{"iss": i.URL, "aud": "platform", "sub": subject, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	for _, c := range changes {
		maps.Copy(claims, c)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: i.key, KeyID: "k"}}, (&jose.SignerOptions{}).WithType(typ))
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}
