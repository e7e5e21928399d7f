// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"maps"
	"testing"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/tokenservice"
)

type object = map[string]any

// issuer makes tokens of both kinds with any claims, which a real provider does not.
type issuer struct {
	*tokenservice.Service

	t *testing.T
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	return &issuer{tokenservice.New(t), t}
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

func (i *issuer) sign(typ, subject string, changes []object) string {
	i.t.Helper()
	claims := object{"sub": subject}
	for _, c := range changes {
		maps.Copy(claims, c)
	}
	return must(i.Sign(typ, claims))(i.t)
}
