// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauthprovider is an OAuth 2.0 provider for tests, with an API (api.go) that takes its tokens: RFC 6749 with PKCE, rotating refresh tokens, revocation (RFC 7009) and the
// parameter iss (RFC 9207), over TLS on loopback under a public name. It is as strict as a real one: a code counts once, a refresh token
// that was rotated revokes its family. A test may have it answer otherwise. A test gives consent with Consent, a browser at the page of
// authorize.go.
package oauthprovider

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// What the provider calls itself, and the client that it knows.
const (
	Host         = "accounts.provider.example"
	Issuer       = "https://" + Host
	AuthorizeURL = Issuer + "/authorize"
	TokenURL     = Issuer + "/token"
	RevokeURL    = Issuer + "/revoke"
	ClientID     = "platform-client"
	ClientSecret = "client-secret-canary-5fd1"
)

// Answer answers a request in place of the provider; false leaves it to the provider.
type Answer func(w http.ResponseWriter, r *http.Request) bool

// Provider is a provider.
type Provider struct {
	server *httptest.Server

	mu      sync.Mutex // guards all below
	answers map[string]Answer
	codes   map[string]code
	tokens  map[string]*token // by the refresh token
	access  map[string]*token
	issued  []string // every code and token
	count   map[string]int
	serial  int
	scope   *string
	expires any
	revoked []string
	// exchanged counts the requests for tokens by their code, and refreshes are the refresh tokens that were given for codes.
	exchanged map[string]int
	refreshes map[string]string
	callers   int
	calls     []Call
	hello     func()
}

// code is a code that was given out.
type code struct {
	redirect, challenge, scope string
}

// token is a grant.
type token struct {
	family  int
	scope   string
	spent   bool // it was rotated
	revoked bool
}

// New starts a provider, which ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{
		answers: map[string]Answer{}, codes: map[string]code{}, tokens: map[string]*token{}, access: map[string]*token{}, count: map[string]int{}, expires: 3600,
		exchanged: map[string]int{}, refreshes: map[string]string{},
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p.mu.Lock()
		f := p.hello
		p.mu.Unlock()
		if f != nil {
			f()
		}
		return nil, nil //nolint:nilnil // the one of the server
	}}
	p.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.callers++
		}
	}
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that tests cut off
	p.server.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// Close ends the provider; nobody reaches it any more. It may be called twice.
func (p *Provider) Close() { p.server.Close() }

// Transport reaches the provider under its name, and nothing else. It counts as a public address.
func (p *Provider) Transport() http.RoundTripper { return TransportTo(p.Address()) }

// TransportTo is the Transport of a provider at an Address, which may be that of another process.
func TransportTo(address string) http.RoundTripper {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			if to != Host+":443" && to != APIHost+":443" {
				return nil, fmt.Errorf("the test does not know %s", to)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the certificate of a test has another name
	}
}

// Address is where the provider listens on loopback, as host:port.
func (p *Provider) Address() string { return p.server.Listener.Addr().String() }

// Answers sets what answers the requests to a path, such as "/token"; nil for the provider itself.
func (p *Provider) Answers(path string, a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[path] = a
}

// Hello sets what is called when somebody begins to connect, before a request can be sent; nil for nothing.
func (p *Provider) Hello(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hello = f
}

// Grants sets the scope that token answers have from now on; nil leaves it out, as RFC 6749 permits if it is what was asked for.
func (p *Provider) Grants(scope *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scope = scope
}

// Expires sets expires_in of token answers; nil leaves it out.
func (p *Provider) Expires(in any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expires = in
}

// Requests returns how many requests a path has had.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[path]
}

// Callers returns how many connections there have been.
func (p *Provider) Callers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callers
}

// Exchanged returns how many requests for tokens each code has had, whatever they were answered.
func (p *Provider) Exchanged() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.exchanged)
}

// Refresh returns the refresh token that was given for a code; empty if there is none.
func (p *Provider) Refresh(code string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refreshes[code]
}

// Secrets returns every code and token that was given out, and the secret of the client.
func (p *Provider) Secrets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.issued), ClientSecret)
}

// Revoked returns the tokens that were revoked by a client, in order.
func (p *Provider) Revoked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.revoked)
}

// Consent does what the browser of a person does at the address of a consent, and returns where it is sent back to. changes edit the query
// of that.
func (p *Provider) Consent(t testing.TB, authorizeURL string, changes ...func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(authorizeURL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Scheme+"://"+u.Host+u.Path != AuthorizeURL {
		t.Fatalf("authorize %s", authorizeURL)
	}
	back, answer, err := p.consent(u.Query())
	if err != nil {
		t.Fatalf("authorize %s: %v", authorizeURL, err)
	}
	for _, change := range changes {
		change(answer)
	}
	back.RawQuery = answer.Encode()
	return back.String()
}

// give returns a new value that tests search for.
func (p *Provider) give(kind string) string {
	p.serial++
	value := fmt.Sprintf("%s-canary-%d-%x", kind, p.serial, sha256.Sum256(fmt.Append(nil, kind, p.serial)))[:48]
	p.issued = append(p.issued, value)
	return value
}

// ServeHTTP answers token and revocation requests, and shows the page of a consent.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host == APIHost {
		p.api(w, r)
		return
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	p.count[r.URL.Path]++
	if code != "" {
		p.exchanged[code]++
	}
	answer := p.answers[r.URL.Path]
	p.mu.Unlock()
	if answer == nil || !answer(w, r) {
		p.Answer(w, r)
	}
}

// Answer answers as the provider does by itself, for an Answer that needs to know when that was.
func (p *Provider) Answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/authorize" {
		p.authorize(w, r)
		return
	}
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != ClientSecret {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
	case r.URL.Path == "/token" && r.PostFormValue("grant_type") == "authorization_code":
		p.exchange(w, r)
	case r.URL.Path == "/token" && r.PostFormValue("grant_type") == "refresh_token":
		p.renew(w, r)
	case r.URL.Path == "/revoke":
		p.revoke(r.PostFormValue("token"))
		w.WriteHeader(http.StatusOK)
	default:
		reply(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
	}
}

func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	c, ok := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(sum[:])
	if !ok || c.redirect != r.PostFormValue("redirect_uri") || c.challenge != "" && c.challenge != proof {
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	p.serial++
	p.refreshes[r.PostFormValue("code")] = p.issue(w, &token{family: p.serial, scope: c.scope})
}

func (p *Provider) renew(w http.ResponseWriter, r *http.Request) {
	old := p.tokens[r.PostFormValue("refresh_token")]
	if old == nil || old.revoked || old.spent {
		if old != nil && old.spent { // somebody has a token that was rotated
			p.revokeFamily(old.family)
		}
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	old.spent = true
	p.issue(w, &token{family: old.family, scope: old.scope})
}

// issue answers with tokens of a grant, and returns the refresh token.
func (p *Provider) issue(w http.ResponseWriter, g *token) (refresh string) {
	access, refresh := p.give("access"), p.give("refresh")
	p.tokens[refresh], p.access[access] = g, g
	out := map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer"}
	if p.scope != nil {
		out["scope"] = *p.scope
	}
	if p.expires != nil {
		out["expires_in"] = p.expires
	}
	reply(w, http.StatusOK, out)
	return refresh
}

func (p *Provider) revoke(value string) {
	p.revoked = append(p.revoked, value)
	for _, all := range []map[string]*token{p.tokens, p.access} {
		if g := all[value]; g != nil {
			p.revokeFamily(g.family)
		}
	}
}

func (p *Provider) revokeFamily(family int) {
	for _, g := range p.tokens {
		if g.family == family {
			g.revoked = true
		}
	}
}

func reply(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // texts and numbers; a client that left needs no answer
}

// Secret is the name of the Secret of Manifest.
const Secret = "provider-client"

// Manifest is a ConnectorProvider of this provider, named "provider", with further lines below spec.oauth.
func Manifest(lines ...string) string {
	return strings.Join(append([]string{
		"apiVersion: core.platform.ai/v1alpha1", "kind: ConnectorProvider", "metadata: {name: provider, namespace: team}", "spec:",
		"  tools:", "  - {name: find, class: read, source: HTTP, description: Finds., parameters: {type: object}, http: {url: https://" + APIHost + "/find}}",
		"  - {name: note, class: write, source: HTTP, description: Notes., parameters: {type: object, properties: {text: {type: string}}}, http: {url: https://" + APIHost + "/note}}",
		"  oauth:", "    authorizeURL: " + AuthorizeURL, "    tokenURL: " + TokenURL, "    revocationURL: " + RevokeURL, "    clientID: " + ClientID,
		"    clientSecretRef: {name: " + Secret + ", key: secret}", "    scopes: {read: [read], write: [write]}",
	}, lines...), "\n")
}
