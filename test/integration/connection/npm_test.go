// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/oauthprovider"
)

// op is the public address of oidc-provider.
const op = "https://op.provider.example"

// proxy leads to oidc-provider as a proxy that ends TLS would, and remembers what it gave for codes.
type proxy struct {
	to *url.URL

	mu     sync.Mutex
	grants []tokens
}

// tokens is the answer of a token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// RoundTrip sends a request to oidc-provider.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Clone(r.Context())
	to.URL.Scheme, to.URL.Host, to.Host = p.to.Scheme, p.to.Host, r.URL.Host
	to.Header.Set("X-Forwarded-Proto", r.URL.Scheme)
	to.Header.Set("X-Forwarded-Host", r.URL.Host)
	resp, err := http.DefaultTransport.RoundTrip(to)
	if err != nil || r.URL.Path != "/token" {
		return resp, err
	}
	data, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	var given tokens
	if json.Unmarshal(data, &given) == nil && given.Access != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.grants = append(p.grants, given)
	}
	return resp, err
}

// granted returns what was given last.
func (p *proxy) granted() tokens {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grants[len(p.grants)-1]
}

// ask asks an endpoint as the client of the platform.
func (p *proxy) ask(t *testing.T, path string, form url.Values) (code int, answer map[string]any) {
	t.Helper()
	req := kit.Must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, op+path, strings.NewReader(form.Encode())))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(oauthprovider.ClientID, oauthprovider.ClientSecret)
	resp, err := p.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("%s: %s %v", path, resp.Status, err)
	}
	return resp.StatusCode, answer
}

// newProxy starts oidc-provider.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	kit.Needs(t, kit.NPM)
	client := fmt.Sprintf(`{"client_id":%q,"client_secret":%q,"redirect_uris":[%q],"grant_types":["authorization_code","refresh_token"],`+
		`"response_types":["code"],"token_endpoint_auth_method":"client_secret_basic"}`, oauthprovider.ClientID, oauthprovider.ClientSecret, base+"/api/v1/connections/callback")
	cmd := exec.Command("node", "provider.mjs")
	cmd.Env = append(os.Environ(), "ISSUER="+op, "CLIENT="+client)
	in := kit.Must[io.WriteCloser](t)(cmd.StdinPipe())
	pipe := kit.Must[io.ReadCloser](t)(cmd.StdoutPipe())
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(pipe)
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("oidc-provider ended: %v", err)
		}
		if address := strings.TrimSpace(line); strings.HasPrefix(address, "http://") { // it also prints notices
			return &proxy{to: kit.Must[*url.URL](t)(url.Parse(address))}
		}
	}
}

// The forms of the pages, and the hidden field that says which one it is.
var (
	action = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	prompt = regexp.MustCompile(`name="prompt" value="([a-z]+)"`)
)

// visit opens an address at the provider as a person who signs in and consents, and returns where the person is sent back to.
func (p *proxy) visit(t *testing.T, address, login string) (back string, pages []string) {
	t.Helper()
	browser := &http.Client{Transport: p, Jar: kit.Must[*cookiejar.Jar](t)(cookiejar.New(nil)), CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), base+"/") {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	a := host.Send(t, browser, http.MethodGet, address, "")
	for a.Code/100 != 3 {
		form, kind := action.FindStringSubmatch(a.Body), prompt.FindStringSubmatch(a.Body)
		if form == nil || kind == nil || len(pages) > 2 {
			t.Fatalf("after %v: %d %.2000s", pages, a.Code, a.Body)
		}
		pages = append(pages, kind[1])
		filled := url.Values{"prompt": {kind[1]}, "login": {login}, "password": {"any"}}
		a = host.Send(t, browser, http.MethodPost, form[1], filled.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	}
	return a.Header.Get("Location"), pages
}

// A person links an account at oidc-provider, which is certified and not ours: with PKCE, the parameter iss, scopes, rotating refresh
// tokens and revocation.
func TestCertifiedProvider(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	w := emptyWorld(t, p)
	// What its metadata says is what is written into the manifest.
	about := host.Decode[map[string]any](t, host.Send(t, &http.Client{Transport: p}, http.MethodGet, op+"/.well-known/openid-configuration", ""))
	known := func(name string) string { s, _ := about[name].(string); return s }
	if known("issuer") != op || about["authorization_response_iss_parameter_supported"] != true {
		t.Fatalf("metadata: %v", about)
	}
	w.applied(strings.Join([]string{
		"apiVersion: core.platform.ai/v1alpha1", "kind: ConnectorProvider", "metadata: {name: provider, namespace: team}", "spec:",
		"  tools:", "  - {name: find, class: read, source: HTTP, description: Finds., parameters: {type: object}, http: {url: https://api.provider.example/find}}",
		"  oauth:", "    issuer: " + op, "    authorizeURL: " + known("authorization_endpoint"), "    tokenURL: " + known("token_endpoint"),
		"    revocationURL: " + known("revocation_endpoint"), "    clientID: " + oauthprovider.ClientID,
		"    clientSecretRef: {name: " + oauthprovider.Secret + ", key: secret}", "    scopes: {read: [read], write: [write]}",
	}, "\n"))
	ann := w.person("user-ann")

	begun := w.connect(ann, "")
	back, pages := p.visit(t, begun.AuthorizeURL, "ann")
	if !slices.Equal(pages, []string{"login", "consent"}) || w.parameter(back, "iss") != op {
		t.Errorf("pages %v lead to %s", pages, back)
	}
	linked := host.Decode[row](t, w.complete(ann, begun.Connection.Name, w.parked(back)).Want(t, http.StatusOK))
	if !linked.Ready || !slices.Equal(linked.GrantedScopes, []string{"read"}) || linked.ExpiresAt == nil {
		t.Errorf("linked: %+v", linked)
	}
	w.refused(back, "invalid_state")
	first := p.granted()
	if first.Scope != "read" || first.Refresh == "" {
		t.Errorf("granted: %+v", first)
	}

	// A wider mode needs another consent, which has a grant of its own.
	wider := w.connect(ann, "readWrite")
	back, _ = p.visit(t, wider.AuthorizeURL, "ann")
	again := host.Decode[row](t, w.complete(ann, linked.Name, w.parked(back)).Want(t, http.StatusOK))
	if !again.Ready || !slices.Equal(again.GrantedScopes, []string{"read", "write"}) {
		t.Errorf("linked again: %+v", again)
	}
	second := p.granted()

	// Another client's state, another issuer and a proof that does not fit are refused by whoever sees them.
	back, _ = p.visit(t, w.connect(ann, "").AuthorizeURL, "ann")
	w.refused(w.with(back, func(q url.Values) { q.Set("iss", "https://other.example") }), "provider_rejected")
	unproved := w.connect(ann, "")
	back, _ = p.visit(t, w.with(unproved.AuthorizeURL, func(q url.Values) { q.Set("code_challenge", strings.Repeat("A", 43)) }), "ann")
	w.refused(back, "exchange_failed")
	bare, _ := p.visit(t, w.with(w.connect(ann, "").AuthorizeURL, func(q url.Values) { q.Del("code_challenge"); q.Del("code_challenge_method") }), "ann")
	w.refused(bare, "provider_rejected")

	// Both grants live until the person disconnects.
	for _, g := range []tokens{first, second} {
		if _, a := p.ask(t, "/token/introspection", url.Values{"token": {g.Access}}); a["active"] != true {
			t.Errorf("before: %v", a)
		}
	}

	ann.Do(http.MethodDelete, "/api/v1/connections/"+linked.Name, "").Want(t, http.StatusNoContent)
	w.gone(ann, linked.Name)
	for _, g := range []tokens{first, second} {
		for _, token := range []string{g.Access, g.Refresh} {
			if _, a := p.ask(t, "/token/introspection", url.Values{"token": {token}}); a["active"] != false {
				t.Errorf("afterwards: %v", a)
			}
		}
		if code, a := p.ask(t, "/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}}); code != http.StatusBadRequest || a["error"] != "invalid_grant" {
			t.Errorf("refreshed afterwards: %d %v", code, a)
		}
	}
	if w.counted(revocations, "revoked") != 2 || w.counted(revocations, "failed") != 0 {
		t.Errorf("%d revoked, %d failed", w.counted(revocations, "revoked"), w.counted(revocations, "failed"))
	}
	w.buried(1)
}
