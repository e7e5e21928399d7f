// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// fakeProvider answers as a provider that is well, or not.
type fakeProvider struct {
	*httptest.Server

	metadata, codes int    // requests
	nonce           string // of the ID tokens
	broken          bool
}

func newFakeProvider(t *testing.T) *fakeProvider {
	t.Helper()
	p := &fakeProvider{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/openid-configuration":
			if p.metadata++; p.broken {
				http.Error(w, "broken", http.StatusInternalServerError)
				return
			}
			_, _ = fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[2]s/auth?x=1","token_endpoint":"%[2]s/token"}`, p.URL, p.URL)
		case r.FormValue("code") != "good" || r.FormValue("code_verifier") == "":
			p.codes++
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"error":"invalid_grant"}`)
		default:
			p.codes++
			payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"nonce":%q}`, p.nonce))
			_, _ = fmt.Fprintf(w, `{"id_token":"e30.%s.x","access_token":"access"}`, payload)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func newLogin(t *testing.T, issuer string) (*Login, *clocktesting.FakeClock) {
	t.Helper()
	c := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	o := Options{OIDC: OIDC{Issuer: issuer, Audience: "console", ClientID: "console"}}
	s, err := New(o, nil, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	l, err := s.Login(o)
	if err != nil || l == nil {
		t.Fatalf("no login: %v", err)
	}
	return l, c
}

// A login asks the provider for a code that only this login can use, and takes no answer to another one.
func TestLoginFlow(t *testing.T) {
	p := newFakeProvider(t)
	l, _ := newLogin(t, p.URL)
	a, address, err := l.Begin(t.Context(), "https://host/console/provider/callback")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("x") != "1" || q.Get("code_challenge_method") != "S256" || q.Get("state") != a.State || q.Get("nonce") != a.Nonce || strings.Contains(address, a.Verifier) || q.Get("scope") != "openid profile email" {
		t.Errorf("the address is %s", address)
	}
	p.nonce = a.Nonce
	tokens, err := l.Finish(t.Context(), a, url.Values{"code": {"good"}, "iss": {p.URL}})
	if err != nil || len(tokens) != 2 || tokens[1] != "access" {
		t.Errorf("tokens %v, %v", tokens, err)
	}
	p.codes = 0
	for name, answer := range map[string]url.Values{
		"another provider": {"code": {"good"}, "iss": {"https://evil.example"}}, "a refusal": {"error": {"access_denied"}}, "nothing": {},
	} {
		if _, err := l.Finish(t.Context(), a, answer); err == nil || p.codes > 0 {
			t.Errorf("%s: %v, %d requests", name, err, p.codes)
		}
	}
	if _, err := l.Finish(t.Context(), a, url.Values{"code": {"bad"}}); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a code that is not good: %v", err)
	}
	p.nonce = "other"
	if _, err := l.Finish(t.Context(), a, url.Values{"code": {"good"}}); err == nil {
		t.Error("the ID token of another login is taken")
	}
}

// However many logins are begun, by whomever, the provider's metadata are read rarely.
func TestLoginsDoNotFloodTheProvider(t *testing.T) {
	p := newFakeProvider(t)
	l, c := newLogin(t, p.URL)
	begin := func() (failed int) {
		for range 100 {
			if _, _, err := l.Begin(t.Context(), "https://host/"); err != nil {
				failed++
			}
		}
		return failed
	}
	if failed := begin(); failed > 0 || p.metadata != 1 {
		t.Errorf("%d logins failed, and the metadata were read %d times", failed, p.metadata)
	}
	p.broken = true
	c.Step(refreshAfter)
	if failed := begin(); failed != 100 || p.metadata != 2 {
		t.Errorf("a broken provider: %d logins failed, and the metadata were read %d times", failed, p.metadata)
	}
	p.broken = false
	c.Step(pauseBetween)
	if failed := begin(); failed > 0 || p.metadata != 3 {
		t.Errorf("afterwards: %d logins failed, and the metadata were read %d times", failed, p.metadata)
	}
	for range maxExchanges {
		l.exchanges <- struct{}{}
	}
	if _, err := l.Finish(t.Context(), &Attempt{}, url.Values{"code": {"x"}}); !errors.Is(err, ErrBusy) || p.codes > 0 {
		t.Errorf("one exchange too many: %v, %d requests", err, p.codes)
	}
}

// Options of a login that cannot work are refused.
func TestLoginOptions(t *testing.T) {
	for name, o := range map[string]OIDC{
		"no issuer": {ClientID: "c"},
		"no client": {Issuer: "https://a", Audience: "a", ClientSecretFile: "f"},
		"no openid": {Issuer: "https://a", Audience: "a", ClientID: "c", Scopes: []string{"profile"}},
	} {
		if err := (&Options{OIDC: o}).Check(); err == nil || !strings.Contains(err.Error(), "--oidc-") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
