// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenexchange

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// MaxToken is the maximum length of a token, in bytes.
	MaxToken = 16 << 10
	// TypeHeader is the typ header of transaction tokens.
	TypeHeader = "txntoken+jwt"
)

// Decode reads what a JWT says about itself into claims, and returns its type without the prefix that senders may leave
// out (RFC 7515), in lower case. It checks no signature. ok is false for a text that is not a JWT.
func Decode(token string, claims any) (typ string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > MaxToken {
		return "", false
	}
	part := func(i int, into any) bool {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		return err == nil && json.Unmarshal(data, into) == nil
	}
	var header struct {
		Typ string `json:"typ"`
	}
	if !part(0, &header) || !part(1, claims) {
		return "", false
	}
	return NormalType(header.Typ), true
}

// NormalType returns a typ header without the prefix that senders may leave out (RFC 7515), in lower case.
func NormalType(typ string) string { return strings.TrimPrefix(strings.ToLower(typ), "application/") }

// claims are the claims that tie a token to its transaction.
type claims struct {
	Issuer      string  `json:"iss"`
	Subject     string  `json:"sub"`
	Transaction string  `json:"txn"`
	Scope       string  `json:"scope"`
	Expiry      float64 `json:"exp"`
}

// over reports whether the token has expired.
func (c *claims) over(now time.Time) bool { return c.Expiry <= float64(now.Unix()) }

// alive refuses a subject that says that it has expired, so that the error says what is wrong. Everything else about it
// is for the service to judge.
func (s *Service) alive(subject string) error {
	var c claims
	if _, ok := Decode(subject, &c); ok && c.Expiry != 0 && c.over(s.clock.Now()) {
		return failed(CauseSubject, "the task's own transaction token has expired (%s), so it can delegate nothing more", time.Unix(int64(c.Expiry), 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// check requires that a new token is one for a child: of the same transaction, valid, and with no other scopes than those
// that were asked for. Its signature is for those who accept the token; the server checks it as well.
func (s *Service) check(token string, t *v1alpha1.TaskTransaction) error {
	var c claims
	typ, ok := Decode(token, &c)
	asked, got := strings.Fields(s.o.ChildScope), strings.Fields(c.Scope)
	wrong := ""
	switch {
	case !ok:
		wrong = "is no JWT"
	case typ != TypeHeader:
		wrong = "is not of type " + TypeHeader
	case c.Issuer != t.Issuer:
		wrong = "is of another issuer"
	case c.Transaction != t.ID:
		wrong = "is for another transaction"
	case c.Subject != t.Subject:
		wrong = "is for another subject"
	case c.over(s.clock.Now()):
		wrong = "has expired, or has no time at which it does"
	case len(got) == 0:
		wrong = "has no scope"
	case slices.ContainsFunc(got, func(scope string) bool { return !slices.Contains(asked, scope) }):
		wrong = "has a scope that was not asked for"
	default:
		return nil
	}
	return failed(CauseToken, "the token that the token service issued %s", wrong)
}
