// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

const (
	// maxToken is the maximum length of a token, in bytes. A longer one is refused before it is decoded.
	maxToken = tokenexchange.MaxToken
	// skew is how far in the future nbf and iat may be, because clocks differ. exp has no such tolerance.
	skew = time.Minute
	// typeTransaction is the typ header of transaction tokens (draft-ietf-oauth-transaction-tokens).
	typeTransaction = tokenexchange.TypeHeader
	// maxContext is the maximum length of a transaction's context, in bytes: it becomes part of each task.
	maxContext = 4 << 10
)

// words is a claim that is a text or a list of texts.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = words{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("must be a text or a list of texts")
	}
	*w = list
	return nil
}

// claims are the claims of a token that are used here.
type claims struct {
	Issuer    string           `json:"iss"`
	Subject   string           `json:"sub"`
	Audience  words            `json:"aud"`
	Expiry    *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	IssuedAt  *jwt.NumericDate `json:"iat"`

	PreferredUsername string `json:"preferred_username"`
	Email             string `json:"email"`
	EmailVerified     any    `json:"email_verified"`
	Name              string `json:"name"`
	Groups            words  `json:"groups"`
	Roles             words  `json:"roles"`
	RealmAccess       struct {
		Roles words `json:"roles"`
	} `json:"realm_access"`

	Transaction      string          `json:"txn"`
	Scope            string          `json:"scope"`
	Workload         string          `json:"req_wl"`
	Context          json.RawMessage `json:"tctx"`
	RequesterContext json.RawMessage `json:"rctx"`
}

// issuer checks the tokens of one issuer and kind. The authenticator of k8s.io/apiserver was considered and is not used: it knows
// neither transaction tokens nor the address of an issuer's keys, and asks the issuer for its keys once for each token with an unknown
// key ID.
type issuer struct {
	name, audience string
	// transaction is set for the issuer of transaction tokens. Its tokens have their own type, so that neither kind of
	// token is accepted in place of the other, even if one issuer makes both.
	transaction bool
	keys        *keySet
	clock       clock.PassiveClock
}

// peeked is what a token says about itself before it is checked.
type peeked struct {
	typ, issuer string
	context     json.RawMessage
}

// namespace returns the namespace that the context names; empty if it names none.
func (p peeked) namespace() string {
	var c constraints
	if json.Unmarshal(p.context, &c) != nil {
		return ""
	}
	return c.Namespace
}

// peek reads a token without checking it. ok is false for a text that is not a JWT.
func peek(token string) (p peeked, ok bool) {
	var payload struct {
		Issuer  string          `json:"iss"`
		Context json.RawMessage `json:"tctx"`
	}
	typ, ok := tokenexchange.Decode(token, &payload)
	if !ok {
		return peeked{}, false
	}
	return peeked{typ, payload.Issuer, payload.Context}, true
}

// check returns the claims of a token that is valid now.
func (i *issuer) check(ctx context.Context, token string) (*claims, error) {
	if len(token) > maxToken {
		return nil, fmt.Errorf("the token is longer than %d bytes", maxToken)
	}
	t, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return nil, errors.New("the token is not a JWT that is signed with RS256")
	}
	header := t.Headers[0]
	typ, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if err := i.checkType(typ); err != nil {
		return nil, err
	}
	if header.KeyID == "" && i.transaction {
		return nil, errors.New("the token has no kid")
	}
	key, err := i.keys.key(ctx, header.KeyID)
	if err != nil {
		return nil, err
	}
	c := &claims{}
	if err := t.Claims(key, c); err != nil {
		return nil, fmt.Errorf("the token's signature or claims are not valid: %w", err)
	}
	return c, i.checkClaims(c)
}

func (i *issuer) checkType(typ string) error {
	switch typ = tokenexchange.NormalType(typ); {
	case i.transaction && typ != typeTransaction:
		return fmt.Errorf("the token is of type %q, not %s", typ, typeTransaction)
	case !i.transaction && !slices.Contains([]string{"", "jwt", "at+jwt"}, typ):
		return fmt.Errorf("the token is of type %q, not an ID token or access token", typ)
	}
	return nil
}

func (i *issuer) checkClaims(c *claims) error {
	now := i.clock.Now()
	switch {
	case c.Issuer != i.name:
		return fmt.Errorf("the token's issuer is %q, not %q", c.Issuer, i.name)
	case !slices.Contains(c.Audience, i.audience):
		return fmt.Errorf("the token is for audience %q, not %q", c.Audience, i.audience)
	case c.Expiry == nil:
		return errors.New("the token has no exp")
	case !now.Before(c.Expiry.Time()):
		return errors.New("the token has expired")
	case c.NotBefore != nil && c.NotBefore.Time().After(now.Add(skew)), c.IssuedAt != nil && c.IssuedAt.Time().After(now.Add(skew)):
		return errors.New("the token is not valid yet")
	case c.Subject == "":
		return errors.New("the token has no sub")
	}
	if i.transaction {
		for name, missing := range map[string]bool{
			"iat": c.IssuedAt == nil, "txn": c.Transaction == "", "scope": strings.TrimSpace(c.Scope) == "", "req_wl": c.Workload == "",
		} {
			if missing {
				return fmt.Errorf("the transaction token has no %s", name)
			}
		}
		if len(c.Context) > maxContext {
			return fmt.Errorf("tctx is longer than %d bytes", maxContext)
		}
	}
	// These become names, labels and headers of requests that the server makes.
	for _, text := range slices.Concat([]string{c.Subject, c.PreferredUsername, c.Email, c.Name, c.Transaction, c.Scope, c.Workload}, c.Groups, c.Roles, c.RealmAccess.Roles, c.Audience) {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
			return errors.New("a claim contains control characters")
		}
	}
	return nil
}

// requester returns who the claims identify.
func (c *claims) requester() v1alpha1.TaskRequester {
	r := v1alpha1.TaskRequester{Subject: c.Subject, Issuer: c.Issuer, Groups: clean(c.Groups), Roles: clean(append(slices.Clone(c.Roles), c.RealmAccess.Roles...))}
	if c.EmailVerified != false && c.EmailVerified != "false" { // otherwise anybody can have entered it
		r.Email = c.Email
	}
	for _, name := range []string{c.PreferredUsername, r.Email, c.Name, c.Subject} {
		if r.Username == "" {
			r.Username = strings.TrimSpace(name)
		}
	}
	return r
}

// clean returns the texts that are not empty, each once.
func clean(list []string) []string {
	var out []string
	for _, s := range list {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// transaction returns the transaction of the claims. The context is stored in a form without insignificant space, and
// its digest is of that form.
func (c *claims) transaction() (*v1alpha1.TaskTransaction, error) {
	t := &v1alpha1.TaskTransaction{
		Profile: ProfileTransactionToken, ID: c.Transaction, Issuer: c.Issuer, Audience: c.Audience, Subject: c.Subject,
		RequestingWorkload: c.Workload, Scope: c.Scope, Scopes: strings.Fields(c.Scope),
	}
	digest := func(raw json.RawMessage) (compact []byte, sum string, err error) {
		if len(raw) == 0 || string(raw) == "null" {
			return nil, "", nil
		}
		object, err := canonical.Decode(raw)
		if _, ok := object.(map[string]any); !ok || err != nil {
			return nil, "", errors.New("tctx and rctx must be objects")
		}
		if err := canonical.Numbers(raw); err != nil {
			return nil, "", fmt.Errorf("tctx and rctx: %w", err)
		}
		if compact, err = json.Marshal(object); err != nil {
			return nil, "", err
		}
		hash := sha256.Sum256(compact)
		return compact, "sha256:" + hex.EncodeToString(hash[:]), nil
	}
	raw, sum, err := digest(c.Context)
	if err != nil {
		return nil, err
	}
	if t.ContextDigest = sum; raw != nil {
		t.Context = &apiextensionsv1.JSON{Raw: raw}
	}
	_, t.RequesterContextDigest, err = digest(c.RequesterContext)
	return t, err
}
