// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	testclock "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/server/host/token"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a signer, an authenticator and the existing objects.
type world struct {
	clock   *testclock.FakePassiveClock
	key     *ecdsa.PrivateKey
	signer  *token.Signer
	auth    *token.Authenticator
	objects map[string]types.UID // kind/namespace/name
	lookups int
	broken  error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: testclock.NewFakePassiveClock(start), key: newKey(t), objects: map[string]types.UID{
		"sa/team/bot": "sa-1", "secret/team/s": "secret-1", "task/team/t": "task-1",
	}}
	lookup := func(kind string) token.UIDFunc {
		return func(_ context.Context, namespace, name string) (types.UID, error) {
			w.lookups++
			return w.objects[kind+"/"+namespace+"/"+name], w.broken
		}
	}
	var err error
	if w.signer, err = token.NewSigner(token.SignerOptions{Key: w.key, Clock: w.clock}); err != nil {
		t.Fatal(err)
	}
	w.auth, err = token.NewAuthenticator(token.AuthenticatorOptions{
		Keys: []*ecdsa.PublicKey{&w.key.PublicKey}, Clock: w.clock,
		ServiceAccount: lookup("sa"), Secret: lookup("secret"), Task: lookup("task"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func claims(change func(*token.Claims)) token.Claims {
	c := token.Claims{Namespace: "team", ServiceAccount: token.Ref{Name: "bot", UID: "sa-1"}, Life: time.Hour}
	if change != nil {
		change(&c)
	}
	return c
}

func (w *world) sign(t *testing.T, change func(*token.Claims)) token.Issued {
	t.Helper()
	issued, err := w.signer.Sign(claims(change))
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func payload(t *testing.T, text string) map[string]any {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(strings.Split(text, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestClaimsAreKubernetes(t *testing.T) {
	w := newWorld(t)
	issued := w.sign(t, func(c *token.Claims) {
		c.Audiences = []string{"vault", "db"}
		c.Task, c.Run = &token.Ref{Name: "t", UID: "task-1"}, "run-1"
	})
	got := payload(t, issued.Token)
	id, _ := got["jti"].(string)
	if issued.CredentialID != "JTI="+id || len(id) != 36 {
		t.Errorf("credential ID %q, jti %q", issued.CredentialID, id)
	}
	if !issued.Expires.Equal(start.Add(time.Hour)) {
		t.Errorf("expires %v", issued.Expires)
	}
	delete(got, "jti")
	at := float64(start.Unix())
	want := map[string]any{
		"iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:team:bot",
		"aud": []any{"vault", "db"}, "iat": at, "nbf": at, "exp": at + 3600,
		"kubernetes.io": map[string]any{
			"namespace":      "team",
			"serviceaccount": map[string]any{"name": "bot", "uid": "sa-1"},
			"task":           map[string]any{"name": "t", "uid": "task-1", "run": "run-1"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestUser(t *testing.T) {
	w := newWorld(t)
	issued := w.sign(t, func(c *token.Claims) { c.Task, c.Run = &token.Ref{Name: "t", UID: "task-1"}, "run-1" })
	got, ok, err := w.auth.AuthenticateToken(t.Context(), issued.Token)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := &authenticator.Response{
		Audiences: authenticator.Audiences{token.DefaultIssuer},
		User: &user.DefaultInfo{
			Name: "system:serviceaccount:team:bot", UID: "sa-1",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated"},
			Extra: map[string][]string{
				"authentication.kubernetes.io/credential-id": {issued.CredentialID},
				"core.platform.ai/task-name":                 {"t"},
				"core.platform.ai/task-uid":                  {"task-1"},
				"core.platform.ai/task-namespace":            {"team"},
				"core.platform.ai/task-run":                  {"run-1"},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	boom := errors.New("disk on fire")
	tests := []struct {
		name   string
		claims func(*token.Claims)
		then   func(*world)
		want   error
	}{
		{name: "good"},
		{name: "good to the last second", then: func(w *world) { w.clock.SetTime(start.Add(time.Hour - time.Second)) }},
		{name: "expired", then: func(w *world) { w.clock.SetTime(start.Add(time.Hour)) }, want: token.ErrExpired},
		{name: "clock set back a little", then: func(w *world) { w.clock.SetTime(start.Add(-time.Minute)) }},
		{name: "clock set back a lot", then: func(w *world) { w.clock.SetTime(start.Add(-time.Hour)) }, want: token.ErrNotYet},
		{name: "foreign audience", claims: func(c *token.Claims) { c.Audiences = []string{"vault"} }, want: token.ErrAudience},
		{name: "one audience of several", claims: func(c *token.Claims) { c.Audiences = []string{"vault", token.DefaultIssuer} }},
		{name: "ServiceAccount deleted", then: func(w *world) { delete(w.objects, "sa/team/bot") }, want: token.ErrRevoked},
		{name: "ServiceAccount made again", then: func(w *world) { w.objects["sa/team/bot"] = "sa-2" }, want: token.ErrRevoked},
		{name: "Secret lives", claims: secret},
		{name: "Secret deleted", claims: secret, then: func(w *world) { delete(w.objects, "secret/team/s") }, want: token.ErrRevoked},
		{name: "Secret made again", claims: secret, then: func(w *world) { w.objects["secret/team/s"] = "secret-2" }, want: token.ErrRevoked},
		{name: "Task lives", claims: task},
		{name: "Task deleted", claims: task, then: func(w *world) { delete(w.objects, "task/team/t") }, want: token.ErrRevoked},
		{name: "Task made again", claims: task, then: func(w *world) { w.objects["task/team/t"] = "task-2" }, want: token.ErrRevoked},
		{name: "store fails", then: func(w *world) { w.broken = boom }, want: boom},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			issued := w.sign(t, tt.claims)
			if tt.then != nil {
				tt.then(w)
			}
			_, ok, err := w.auth.AuthenticateToken(t.Context(), issued.Token)
			if !errors.Is(err, tt.want) || ok != (tt.want == nil) {
				t.Errorf("ok %v, err %v; want %v", ok, err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), issued.Token) {
				t.Error("the error contains the token")
			}
		})
	}
}

func secret(c *token.Claims) { c.Secret = &token.Ref{Name: "s", UID: "secret-1"} }
func task(c *token.Claims)   { c.Task = &token.Ref{Name: "t", UID: "task-1"} }

// A cached signature must not imply that the ServiceAccount still exists.
func TestRevocationIsImmediate(t *testing.T) {
	w := newWorld(t)
	issued := w.sign(t, nil)
	for range 3 {
		if _, ok, err := w.auth.AuthenticateToken(t.Context(), issued.Token); !ok {
			t.Fatal(err)
		}
	}
	if w.lookups != 3 {
		t.Errorf("%d lookups for 3 requests", w.lookups)
	}
	delete(w.objects, "sa/team/bot")
	if _, ok, err := w.auth.AuthenticateToken(t.Context(), issued.Token); ok || !errors.Is(err, token.ErrRevoked) {
		t.Errorf("ok %v, err %v", ok, err)
	}
}

func TestRequestedAudiences(t *testing.T) {
	w := newWorld(t)
	issued := w.sign(t, func(c *token.Claims) { c.Audiences = []string{"vault", "db"} })
	ctx := authenticator.WithAudiences(t.Context(), authenticator.Audiences{"db", "mail"})
	got, ok, err := w.auth.AuthenticateToken(ctx, issued.Token)
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff(authenticator.Audiences{"db"}, got.Audiences); diff != "" {
		t.Error(diff)
	}
}

func TestForgeries(t *testing.T) {
	w := newWorld(t)
	good := w.sign(t, nil).Token
	part := strings.Split(good, ".")
	stranger := newKey(t)

	// resign makes a token with other claims and the given key and header.
	resign := func(key *ecdsa.PrivateKey, kid string, c jwt.Claims) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(s).Claims(c).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var head struct{ Kid string }
	b, err := base64.RawURLEncoding.DecodeString(part[0])
	if err != nil || json.Unmarshal(b, &head) != nil || head.Kid == "" {
		t.Fatalf("header %s: %v", b, err)
	}
	edited := strings.Replace(mustDecode(t, part[1]), `"bot"`, `"root"`, 1)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + part[1] + "."
	expiry := jwt.NewNumericDate(start.Add(time.Hour))

	tests := []struct {
		name, token string
		silent      bool // not our token: no error either
	}{
		{"empty", "", true},
		{"no JWT", "abc.def.ghi", true},
		{"opaque", "s3cret", true},
		{"another issuer", resign(w.key, head.Kid, jwt.Claims{Issuer: "https://accounts.example.com"}), true},
		{"no signature at all", none, true},
		{"claims edited", part[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(edited)) + "." + part[2], false},
		{"signature cut", strings.TrimSuffix(good, part[2]) + "AAAA", false},
		{"stranger's key, our key ID", resign(stranger, head.Kid, jwt.Claims{Issuer: token.DefaultIssuer, Expiry: expiry}), false},
		{"stranger's key", resign(stranger, "x", jwt.Claims{Issuer: token.DefaultIssuer, Expiry: expiry}), false},
		{"our key, no expiry", resign(w.key, head.Kid, jwt.Claims{Issuer: token.DefaultIssuer, Audience: jwt.Audience{token.DefaultIssuer}}), false},
		{"our key, subject without ServiceAccount", resign(w.key, head.Kid, jwt.Claims{
			Issuer: token.DefaultIssuer, Subject: "system:admin", Audience: jwt.Audience{token.DefaultIssuer}, Expiry: expiry,
		}), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // the second time could come from the cache
				resp, ok, err := w.auth.AuthenticateToken(t.Context(), tt.token)
				if ok || resp != nil {
					t.Fatalf("accepted as %v", resp.User)
				}
				if (err == nil) != tt.silent {
					t.Errorf("err = %v", err)
				}
			}
		})
	}
}

func mustDecode(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestKeyRotation(t *testing.T) {
	w := newWorld(t)
	old := w.sign(t, nil).Token
	next := newKey(t)
	always := func(context.Context, string, string) (types.UID, error) { return "sa-1", nil }
	auth, err := token.NewAuthenticator(token.AuthenticatorOptions{
		Keys: []*ecdsa.PublicKey{&next.PublicKey, &w.key.PublicKey}, Clock: w.clock, ServiceAccount: always,
	})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := token.NewSigner(token.SignerOptions{Key: next, Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := signer.Sign(claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{old, fresh.Token} {
		if _, ok, err := auth.AuthenticateToken(t.Context(), text); !ok {
			t.Error(err)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	signer, err := token.NewSigner(token.SignerOptions{Key: key})
	if err != nil {
		b.Fatal(err)
	}
	auth, err := token.NewAuthenticator(token.AuthenticatorOptions{
		Keys:           []*ecdsa.PublicKey{&key.PublicKey},
		ServiceAccount: func(context.Context, string, string) (types.UID, error) { return "sa-1", nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	issued, err := signer.Sign(claims(nil))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok, err := auth.AuthenticateToken(b.Context(), issued.Token); !ok {
			b.Fatal(err)
		}
	}
}
