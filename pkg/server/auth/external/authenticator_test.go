// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestOIDC(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.service()
	hour := s.clock.Now().Add(time.Hour).Unix()
	for name, c := range map[string]struct {
		token string
		user  string // empty: refused
		why   string // contained in the error
	}{
		"valid":               {s.sign(s.claims(), "JWT"), "oidc:user-1", ""},
		"access token":        {s.sign(s.claims(), "at+jwt"), "oidc:user-1", ""},
		"without typ":         {s.sign(s.claims(), ""), "oidc:user-1", ""},
		"several audiences":   {s.sign(s.claims(object{"aud": []string{"a", "platform"}}), ""), "oidc:user-1", ""},
		"preferred name":      {s.sign(s.claims(object{"preferred_username": "ann", "email": "a@b.c", "name": "Ann B"}), ""), "oidc:ann", ""},
		"email":               {s.sign(s.claims(object{"email": "a@b.c", "name": "Ann B"}), ""), "oidc:a@b.c", ""},
		"unverified email":    {s.sign(s.claims(object{"email": "a@b.c", "email_verified": false, "name": "Ann B"}), ""), "oidc:Ann B", ""},
		"privileged name":     {s.sign(s.claims(object{"preferred_username": "system:admin"}), ""), "oidc:system:admin", ""},
		"question mark":       {s.sign(s.claims(object{"sub": "abc"}), ""), "oidc:abc", ""},
		"clock behind":        {s.sign(s.claims(object{"iat": s.clock.Now().Add(50 * time.Second).Unix()}), ""), "oidc:user-1", ""},
		"not listed":          {s.sign(s.claims(object{"sub": "abcd"}), ""), "", "--oidc-allowed-subjects"},
		"listed as a suffix":  {s.sign(s.claims(object{"sub": "x-user-1"}), ""), "", "--oidc-allowed-subjects"},
		"line break":          {s.sign(s.claims(object{"sub": "user-1\nx"}), ""), "", "control characters"},
		"NUL":                 {s.sign(s.claims(object{"sub": "user-1\x00x"}), ""), "", "control characters"},
		"expired":             {s.sign(s.claims(object{"exp": s.clock.Now().Unix()}), ""), "", "has expired"},
		"without exp":         {s.sign(s.claims(object{"exp": nil}), ""), "", "no exp"},
		"not yet":             {s.sign(s.claims(object{"nbf": s.clock.Now().Add(2 * time.Minute).Unix()}), ""), "", "not valid yet"},
		"issued later":        {s.sign(s.claims(object{"iat": hour}), ""), "", "not valid yet"},
		"without sub":         {s.sign(s.claims(object{"sub": nil}), ""), "", "no sub"},
		"wrong audience":      {s.sign(s.claims(object{"aud": "other"}), ""), "", "audience"},
		"without audience":    {s.sign(s.claims(object{"aud": nil}), ""), "", "audience"},
		"none":                {unsigned(s.claims()), "", "RS256"},
		"HS256":               {s.signWith(jose.HS256, s.public(), "one", s.claims(), ""), "", "RS256"},
		"RS512":               {s.signWith(jose.RS512, s.key, "one", s.claims(), ""), "", "RS256"},
		"PS256":               {s.signWith(jose.PS256, s.key, "one", s.claims(), ""), "", "RS256"},
		"other key":           {s.signWith(jose.RS256, keys()[1], "one", s.claims(), ""), "", "signature"},
		"without kid":         {s.signWith(jose.RS256, s.key, "", s.claims(), ""), "oidc:user-1", ""},
		"other, without kid":  {s.signWith(jose.RS256, keys()[1], "", s.claims(), ""), "", "signature"},
		"logout token":        {s.sign(s.claims(), "logout+jwt"), "", "not an ID token"},
		"transaction token":   {s.sign(s.transaction(), "txntoken+jwt"), "", "not accepted in Authorization"},
		"disguised":           {s.sign(s.transaction(), "Application/TxnToken+JWT"), "", "not accepted in Authorization"},
		"claims of two types": {s.sign(s.claims(object{"sub": []string{"user-1"}}), ""), "", "claims"},
		"long":                {s.sign(s.claims(object{"x": strings.Repeat("x", 100_000)}), ""), "", "longer than"},
		"another issuer":      {s.sign(s.claims(object{"iss": "https://other.example.com"}), ""), "", ""},
		"no JWT":              {"a.b.c", "", ""},
	} {
		u, err := ask(t, v, "Authorization", "Bearer "+c.token)
		if c.user == "" {
			if u != nil || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: user %v, error %v; want an error with %q", name, u, err, c.why)
			}
			continue
		}
		if err != nil || u == nil || u.GetName() != c.user {
			t.Errorf("%s: user %v, error %v; want %s", name, u, err, c.user)
		}
	}
	if n := s.fetched(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.service(func(o *Options) { o.ContextToken.Headers = []string{"Txn-Token", "Authorization:Bearer"} })
	u, err := ask(t, v, "Authorization", "Bearer "+s.sign(s.claims(object{
		"preferred_username": "ann", "email": "a@b.c", "groups": []string{"dev", "system:masters", "dev"}, "roles": "r1", "realm_access": object{"roles": []string{"r2", "r1"}},
	}), ""))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{user.AllAuthenticated, GroupOIDC, "oidc:dev", "oidc:system:masters", "oidc-role:r1", "oidc-role:r2"}, u.GetGroups()); d != "" {
		t.Errorf("groups (-want +got):\n%s", d)
	}
	want := &Identity{Type: TypeOIDC, Namespace: "team", Requester: v1alpha1.TaskRequester{
		Subject: "user-1", Issuer: s.URL, Username: "ann", Email: "a@b.c", Groups: []string{"dev", "system:masters"}, Roles: []string{"r1", "r2"},
	}}
	if d := cmp.Diff(want, From(u)); d != "" {
		t.Errorf("identity (-want +got):\n%s", d)
	}
	digests := map[string]bool{}
	for _, id := range []string{"1972435959496572929", "1972435959496572930"} {
		token := s.sign(s.transaction(object{"tctx": object{"namespace": "other", "id": json.RawMessage(id)}, "rctx": object{"id": json.RawMessage(id)}}), "txntoken+jwt")
		u, err := ask(t, v, "Txn-Token", token)
		if err != nil {
			t.Fatal(err)
		}
		i := From(u).Transaction
		if digests[i.ContextDigest], digests[i.RequesterContextDigest] = true, true; !strings.Contains(string(i.Context.Raw), id) {
			t.Errorf("the context of %s is %s", id, i.Context.Raw)
		}
	}
	if len(digests) != 4 {
		t.Errorf("%d digests of 4 contexts: %v", len(digests), digests)
	}
	token := s.sign(s.transaction(object{"tctx": object{"namespace": "other", "repo": "r"}, "rctx": object{"ip": "::1"}}), "txntoken+jwt")
	for _, header := range [][]string{{"Txn-Token", token}, {"Authorization", "Bearer " + token}} {
		u, err := ask(t, v, header...)
		if err != nil {
			t.Fatal(err)
		}
		i := From(u)
		if u.GetName() != "txn:user-1" || i == nil || i.Namespace != "other" || i.Transaction.ID != "txn-1" || i.Transaction.RequestingWorkload != "gateway" ||
			len(i.Transaction.Scopes) != 2 || string(i.Transaction.Context.Raw) != `{"namespace":"other","repo":"r"}` || i.Transaction.ContextDigest == "" || i.Transaction.RequesterContextDigest == "" {
			t.Errorf("%s: %v %+v", header[0], u, i)
		}
	}
}

func TestTransactionTokens(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.service()
	valid := s.sign(s.transaction(), "txntoken+jwt")
	for name, c := range map[string]struct {
		headers []string
		user    string
		why     string
	}{
		"valid":                   {[]string{"Txn-Token", valid}, "txn:user-1", ""},
		"wins over a valid token": {[]string{"Txn-Token", valid, "Authorization", "Bearer local"}, "txn:user-1", ""},
		"does not fall back":      {[]string{"Txn-Token", "x", "Authorization", "Bearer local"}, "", "not a JWT"},
		"empty":                   {[]string{"Txn-Token", "", "Authorization", "Bearer local"}, "", "not a JWT"},
		"twice":                   {[]string{"Txn-Token", valid, "Txn-Token", valid}, "", "several transaction tokens"},
		"two authorizations":      {[]string{"Authorization", "Bearer local", "Authorization", "Bearer " + valid}, "", "several Authorization"},
		"ID token":                {[]string{"Txn-Token", s.sign(s.claims(), "JWT")}, "", "not txntoken+jwt"},
		"type JWT":                {[]string{"Txn-Token", s.sign(s.transaction(), "JWT")}, "", "not txntoken+jwt"},
		"without txn":             {[]string{"Txn-Token", s.sign(s.transaction(object{"txn": nil}), "txntoken+jwt")}, "", "no txn"},
		"without iat":             {[]string{"Txn-Token", s.sign(s.transaction(object{"iat": nil}), "txntoken+jwt")}, "", "no iat"},
		"without scope":           {[]string{"Txn-Token", s.sign(s.transaction(object{"scope": " "}), "txntoken+jwt")}, "", "no scope"},
		"without req_wl":          {[]string{"Txn-Token", s.sign(s.transaction(object{"req_wl": nil}), "txntoken+jwt")}, "", "no req_wl"},
		"without sub":             {[]string{"Txn-Token", s.sign(s.transaction(object{"sub": nil}), "txntoken+jwt")}, "", "no sub"},
		"wrong audience":          {[]string{"Txn-Token", s.sign(s.transaction(object{"aud": "x"}), "txntoken+jwt")}, "", "audience"},
		"wrong issuer":            {[]string{"Txn-Token", s.sign(s.transaction(object{"iss": "https://x.example.com"}), "txntoken+jwt")}, "", "issuer"},
		"expired":                 {[]string{"Txn-Token", s.sign(s.transaction(object{"exp": s.clock.Now().Add(-time.Second).Unix()}), "txntoken+jwt")}, "", "expired"},
		"constraint not readable": {[]string{"Txn-Token", s.sign(s.transaction(object{"tctx": object{"repo": 1}}), "txntoken+jwt")}, "", "tctx"},
		"long context":            {[]string{"Txn-Token", s.sign(s.transaction(object{"tctx": object{"x": strings.Repeat("x", 5000)}}), "txntoken+jwt")}, "", "tctx is longer"},
		"impersonates":            {[]string{"Txn-Token", valid, "Impersonate-User", "admin"}, "", "may not impersonate"},
	} {
		u, err := ask(t, v, c.headers...)
		if c.user == "" && (u != nil || err == nil || !strings.Contains(err.Error(), c.why)) || c.user != "" && (err != nil || u.GetName() != c.user) {
			t.Errorf("%s: user %v, error %v; want user %q, error with %q", name, u, err, c.user, c.why)
		}
	}
	off := s.service(func(o *Options) { o.ContextToken = ContextToken{} })
	if u, err := ask(t, off, "Txn-Token", valid, "Authorization", "Bearer local"); u != nil || err == nil {
		t.Errorf("a transaction token where none are accepted: %v, %v", u, err)
	}
}

// Nobody gets the identity of an external caller from another authenticator, or by impersonation.
func TestIdentityIsNotForged(t *testing.T) {
	t.Parallel()
	v := newStand(t).service()
	u, err := ask(t, v, "Authorization", "Bearer local", "Impersonate-User", "x", "Impersonate-Extra-other", "y")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][]string{"other": {"x"}}, u.GetExtra()); d != "" || From(u) != nil {
		t.Errorf("extras of a user of the host (-want +got):\n%s", d)
	}
	for _, name := range []string{
		"Impersonate-Extra-core.platform.ai%2fauth-type", "impersonate-extra-CORE.platform.ai%2Fauth-subject", "Impersonate-Extra-%63ore.platform.ai%2fauth%2dsubject",
		"Impersonate-Extra-core.platform.ai/auth-type", "Impersonate-Extra-%zz",
	} {
		r, err := http.NewRequest(http.MethodGet, "http://x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header[name] = []string{"oidc"}
		r.Header.Set("Authorization", "Bearer local")
		r.Header.Set("Impersonate-User", "x")
		if resp, ok, err := v.Authenticator(local).AuthenticateRequest(r); ok || err == nil {
			t.Errorf("%s: %v", name, resp)
		}
	}
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.service()
	accepted := func(token string) bool {
		u, err := ask(t, v, "Authorization", "Bearer "+token)
		return err == nil && u != nil
	}
	old := s.sign(s.claims(object{"exp": s.clock.Now().Add(3 * time.Hour).Unix()}), "")
	if !accepted(old) {
		t.Fatal("a valid token is refused")
	}
	s.set(func(s *stand) { s.kid, s.key = "two", keys()[1] })
	fresh := s.sign(s.claims(object{"exp": s.clock.Now().Add(3 * time.Hour).Unix()}), "")
	if accepted(fresh) {
		t.Error("a key was fetched within the pause")
	}
	s.clock.SetTime(s.clock.Now().Add(pauseBetween))
	if !accepted(fresh) {
		t.Error("a token with the new key is refused")
	}
	if accepted(old) {
		t.Error("a token with a key that was withdrawn is accepted")
	}

	// While the issuer is away, its keys are used for an hour.
	s.set(func(s *stand) { s.away = true })
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{refreshAfter, true}, {keepFor - refreshAfter - time.Second, true}, {2 * time.Second, false}} {
		s.clock.SetTime(s.clock.Now().Add(c.after))
		if got := accepted(fresh); got != c.want {
			t.Errorf("after another %s without the issuer: accepted %v", c.after, got)
		}
	}
	_, err := ask(t, v, "Authorization", "Bearer "+fresh)
	if err == nil || !strings.Contains(err.Error(), "not available") {
		t.Errorf("error without keys: %v", err)
	}
	s.set(func(s *stand) { s.away = false })
	s.clock.SetTime(s.clock.Now().Add(pauseBetween))
	if !accepted(fresh) {
		t.Error("a token is refused after the issuer came back")
	}
}

// Tokens with unknown keys cause one fetch for each pause, however many there are.
func TestUnknownKeysDoNotFlood(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	v := s.service()
	var wg sync.WaitGroup
	for i := range 200 {
		token := s.signWith(jose.RS256, keys()[1], fmt.Sprint("unknown-", i), s.claims(), "")
		wg.Go(func() {
			if u, err := ask(t, v, "Authorization", "Bearer "+token); u != nil || err == nil {
				t.Errorf("a token with an unknown key: %v", u)
			}
		})
	}
	wg.Wait()
	if n := s.fetched(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// A token without a kid is checked with the only key of its issuer, whether that has an ID or not, and refused if there are
// several. Transaction tokens must have one.
func TestTokensWithoutKeyID(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kid    string
		second *jose.JSONWebKey
		why    string
	}{
		"a key with an ID":      {"one", nil, ""},
		"a key without an ID":   {"", nil, ""},
		"and one to encrypt":    {"one", &jose.JSONWebKey{Key: keys()[1].Public(), KeyID: "two", Use: "enc"}, ""},
		"two keys":              {"one", &jose.JSONWebKey{Key: keys()[1].Public(), KeyID: "two", Use: "sig"}, "several keys"},
		"two keys, one without": {"", &jose.JSONWebKey{Key: keys()[1].Public(), KeyID: "two", Use: "sig"}, "several keys"},
	} {
		s := newStand(t)
		s.set(func(s *stand) { s.kid, s.second = c.kid, c.second })
		v := s.service()
		u, err := ask(t, v, "Authorization", "Bearer "+s.signWith(jose.RS256, s.key, "", s.claims(), ""))
		if c.why == "" && (err != nil || u == nil) || c.why != "" && (u != nil || err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v, %v", name, u, err)
		}
		if u, err := ask(t, v, "Txn-Token", s.signWith(jose.RS256, s.key, "", s.transaction(), "txntoken+jwt")); u != nil || err == nil || !strings.Contains(err.Error(), "no kid") {
			t.Errorf("%s: a transaction token: %v, %v", name, u, err)
		}
	}
}

// Keys for encryption, and keys that the token does not name, are not used.
func TestKeysThatAreNotUsed(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.set(func(s *stand) { s.kid = "" })
	if _, err := ask(t, s.service(), "Authorization", "Bearer "+s.signWith(jose.RS256, s.key, "one", s.claims(), "")); err == nil || !strings.Contains(err.Error(), "does not have") {
		t.Errorf("a key without a kid: %v", err)
	}
}
