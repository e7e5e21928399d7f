// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/server/router"
	"github.com/platform-ai/platform/test/kit/host"
)

// operations are all operations that the router forwards, with the names of both vendors.
func operations() [][2]string {
	return [][2]string{
		{"POST", "/openai/v1/chat/completions"},
		{"POST", "/openai/v1/responses"},
		{"GET", "/openai/v1/models"},
		{"POST", "/anthropic/v1/messages"},
		{"POST", "/anthropic/v1/messages/count_tokens"},
		{"GET", "/anthropic/v1/models"},
		{"POST", "/provider-a/v1/chat/completions"},
		{"POST", "/provider-a/v1/responses"},
		{"GET", "/provider-a/v1/models"},
		{"POST", "/provider-b/v1/messages"},
		{"POST", "/provider-b/v1/messages/count_tokens"},
		{"GET", "/provider-b/v1/models"},
	}
}

// Each operation goes to the installation of the token's namespace, under the path that installations know.
func TestTokenSelectsInstallation(t *testing.T) { testTokenSelectsInstallation(t, issuing(t)) }

func testTokenSelectsInstallation(t *testing.T, h *issuer) {
	t.Helper()
	a, b := newInstallation(t, "installation-a"), newInstallation(t, "installation-b")
	s := start(t, h, map[string]string{"team-a": a.URL, "team-b": b.URL})
	bearer := map[*installation]string{a: "Bearer " + h.token(t, "team-a", "client"), b: "Bearer " + h.token(t, "team-b", "client")}
	for _, op := range operations() {
		for in, authorization := range bearer {
			got := s.call(t, op[0], op[1]+"?limit=7", `{"model":"m"}`, "Authorization", authorization, "Content-Type", "application/json")
			if got.code != http.StatusOK || !strings.Contains(got.body, in.name) {
				t.Errorf("%v: %d %s", op, got.code, got.body)
				continue
			}
			want := strings.NewReplacer("provider-a", "openai", "provider-b", "anthropic").Replace(op[1])
			last := in.last(t)
			if last.path != want || last.method != op[0] {
				t.Errorf("%v reached the installation as %s %s", op, last.method, last.path)
			}
			ns := strings.Replace(in.name, "installation", "team", 1)
			if diff := cmp.Diff(url.Values{"limit": {"7"}, "namespace": {ns}}, must(t, url.ParseQuery)(last.query)); diff != "" {
				t.Errorf("%v: query (-want +got):\n%s", op, diff)
			}
			if got.header.Get("Cache-Control") != "private, no-store" || got.header.Get("X-Request-Id") == "" {
				t.Errorf("%v: header %v", op, got.header)
			}
		}
	}
	if len(a.requests()) != len(operations()) || len(b.requests()) != len(operations()) {
		t.Errorf("%d and %d requests, want %d each", len(a.requests()), len(b.requests()), len(operations()))
	}
}

func must[In, Out any](t *testing.T, f func(In) (Out, error)) func(In) Out {
	t.Helper()
	return func(in In) Out {
		out, err := f(in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// The statuses that concern credentials and namespaces, in both envelopes. None of these requests reaches an
// installation.
func TestRefusals(t *testing.T) { testRefusals(t, issuing(t)) }

func testRefusals(t *testing.T, h *issuer) {
	t.Helper()
	in := newInstallation(t, "installation-a")
	s := start(t, h, map[string]string{"team-a": in.URL})
	good, other := h.token(t, "team-a", "client"), h.token(t, "team-c", "client")
	elsewhere := h.token(t, "team-a", "client", "another-service")
	const anthropic, openai = "/anthropic/v1/messages", "/openai/v1/chat/completions"
	for name, tc := range map[string]struct {
		path    string
		headers []string
		code    int
		kind    string
	}{
		"no credential":               {openai, nil, 401, "authentication_error"},
		"no credential, messages":     {anthropic, nil, 401, "authentication_error"},
		"not a token":                 {openai, []string{"Authorization", "Bearer sk-abcdefghijklmnop"}, 401, "authentication_error"},
		"forged":                      {openai, []string{"Authorization", "Bearer " + forgedToken("team-a", "client")}, 401, "authentication_error"},
		"for another service":         {openai, []string{"Authorization", "Bearer " + elsewhere}, 401, "authentication_error"},
		"another scheme":              {openai, []string{"Authorization", "Basic dGVhbTpwYXNzd29yZA=="}, 401, "authentication_error"},
		"no scheme":                   {openai, []string{"Authorization", good}, 401, "authentication_error"},
		"empty":                       {openai, []string{"Authorization", ""}, 401, "authentication_error"},
		"two":                         {openai, []string{"Authorization", "Bearer " + good, "Authorization", "Bearer " + good}, 401, "authentication_error"},
		"key for chat completions":    {openai, []string{"X-Api-Key", good}, 401, "authentication_error"},
		"bad bearer, good key":        {anthropic, []string{"Authorization", "Bearer " + forgedToken("team-a", "client"), "X-Api-Key", good}, 401, "authentication_error"},
		"other scheme, good key":      {anthropic, []string{"Authorization", "Basic dGVhbTpwYXNzd29yZA==", "X-Api-Key", good}, 401, "authentication_error"},
		"empty bearer, good key":      {anthropic, []string{"Authorization", "", "X-Api-Key", good}, 401, "authentication_error"},
		"two keys":                    {anthropic, []string{"X-Api-Key", good, "X-Api-Key", other}, 401, "authentication_error"},
		"transaction token":           {openai, []string{"Txn-Token", "abcdefghijklmnop"}, 401, "authentication_error"},
		"transaction token, too":      {openai, []string{"Authorization", "Bearer " + good, "Txn-Token", "abcdefghijklmnop"}, 401, "authentication_error"},
		"disabled namespace":          {openai, []string{"Authorization", "Bearer " + other}, 403, "permission_error"},
		"disabled namespace, by key":  {anthropic, []string{"X-Api-Key", other}, 403, "permission_error"},
		"another namespace":           {openai + "?namespace=team-c", []string{"Authorization", "Bearer " + good}, 400, "invalid_request_error"},
		"an empty namespace":          {openai + "?namespace=", []string{"Authorization", "Bearer " + good}, 400, "invalid_request_error"},
		"two namespaces":              {openai + "?namespace=team-a&namespace=team-c", []string{"Authorization", "Bearer " + good}, 400, "invalid_request_error"},
		"another namespace, messages": {anthropic + "?namespace=team-c", []string{"X-Api-Key", good}, 400, "invalid_request_error"},
		"malformed query":             {openai + "?a=%zz", []string{"Authorization", "Bearer " + good}, 400, "invalid_request_error"},
		"unknown path":                {"/openai/v1/embeddings", []string{"Authorization", "Bearer " + good}, 404, "not_found_error"},
		"unknown path, messages":      {"/anthropic/v1/messages/batches", []string{"X-Api-Key", good}, 404, "not_found_error"},
		"unknown path, alias":         {"/provider-b/v1/complete", nil, 404, "not_found_error"},
		"no prefix":                   {"/v1/chat/completions", nil, 404, "not_found_error"},
		"unclean path":                {"/openai/v1/../v1/chat/completions", nil, 404, "not_found_error"},
		"encoded path":                {"/openai/v1/chat%2Fcompletions", nil, 404, "not_found_error"},
		"another method":              {"/openai/v1/models", nil, 404, "not_found_error"},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.call(t, http.MethodPost, tc.path, `{}`, tc.headers...)
			kind, message := errorOf(t, tc.path, got)
			if got.code != tc.code || kind != tc.kind || message == "" {
				t.Errorf("got %d %s", got.code, got.body)
			}
			if got.header.Get("Cache-Control") != "private, no-store" {
				t.Errorf("header %v", got.header)
			}
			if got.code == http.StatusUnauthorized && got.header.Get("Www-Authenticate") != "Bearer" {
				t.Errorf("header %v", got.header)
			}
		})
	}
	if all := in.requests(); len(all) != 0 {
		t.Errorf("these reached the installation: %v", all)
	}
}

// The router passes on what an installation refuses, with the installation's own message.
func TestInstallationErrorsPassUnchanged(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	for _, code := range []int{400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 529} {
		body := fmt.Sprintf(`{"error":{"message":"status %d of the installation","type":"x","param":"p","code":"c","more":[1]}}`, code)
		in.serve = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
		got := s.call(t, "POST", "/openai/v1/chat/completions", `{}`, "Authorization", "Bearer "+token)
		if got.code != code || got.body != body || got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Retry-After") != "5" {
			t.Errorf("%d: %d %s %v", code, got.code, got.body, got.header)
		}
	}
}

// If an installation redirects, is not reachable or cannot be trusted, the answer is 503, and no other installation is
// asked.
func TestUnusableInstallations(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	other := newInstallation(t, "other")
	redirects := newInstallation(t, "redirects")
	redirects.serve = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	untrusted := httptest.NewTLSServer(other)
	t.Cleanup(untrusted.Close)
	s := start(t, h, map[string]string{"redirects": redirects.URL, "gone": gone.URL, "untrusted": untrusted.URL, "other": other.URL})
	for namespace, want := range map[string]string{"redirects": "redirect", "gone": "cannot be reached", "untrusted": "cannot be verified"} {
		token := h.token(t, namespace, "client")
		for _, path := range []string{"/openai/v1/responses", "/anthropic/v1/messages"} {
			got := s.call(t, "POST", path, `{}`, "Authorization", "Bearer "+token)
			if kind, message := errorOf(t, path, got); got.code != 503 || kind != "api_error" || !strings.Contains(message, want) {
				t.Errorf("%s %s: %d %s", namespace, path, got.code, got.body)
			}
			if got.header.Get("Location") != "" {
				t.Errorf("%s %s: header %v", namespace, path, got.header)
			}
		}
	}
	if all := other.requests(); len(all) != 0 {
		t.Errorf("another installation was asked: %v", all)
	}
}

// The router needs exactly one permission on the API server. Without it no token can be checked, and the answer does not
// blame the token.
func TestTokensCannotBeChecked(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	powerless := host.Kubeconfig(t, h.With(h.token(t, "team-a", "nobody")), "")
	s := start(t, h, map[string]string{"team-a": in.URL}, func(o *router.Options) { o.Kubeconfig = powerless })
	got := s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+h.token(t, "team-a", "client"))
	if kind, _ := errorOf(t, "/openai/v1/models", got); got.code != 503 || kind != "api_error" {
		t.Errorf("%d %s", got.code, got.body)
	}
	if len(in.requests()) != 0 {
		t.Error("the request reached the installation")
	}
	if !strings.Contains(s.logs(), "Forbidden") {
		t.Errorf("the log does not say why: %s", s.logs())
	}
}

// Only headers that belong to the protocol reach the installation, with one credential.
func TestHeadersToTheInstallation(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	s := start(t, h, map[string]string{"team-a": in.URL})
	token, key := h.token(t, "team-a", "client"), h.token(t, "team-a", "second")
	got := s.call(t, "POST", "/anthropic/v1/messages", `{"model":"m"}`,
		"Authorization", "bearer  "+token, "X-Api-Key", key, "Cookie", "session=0123456789", "Proxy-Authorization", "Basic 0123456789",
		"Impersonate-User", "system:admin", "Impersonate-Group", "system:masters", "Impersonate-Extra-Scopes", "all",
		"X-Remote-User", "system:admin", "X-Forwarded-For", "10.0.0.1", "Forwarded", "for=10.0.0.1",
		"X-Stainless-Lang", "js", "Anthropic-Dangerous-Direct-Browser-Access", "true", "Origin", "https://page.example",
		"Content-Type", "application/json; charset=utf-8", "Accept", "application/json", "Accept-Encoding", "br", "User-Agent", "sdk/1.0",
		"Anthropic-Version", "2023-06-01", "Anthropic-Beta", "one", "Anthropic-Beta", "two", "X-Platform-Tools", "disabled", "X-Orka-Tools", "disabled",
		"X-Request-Id", "req-1", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Tracestate", "a=b",
		"Connection", "Tracestate")
	if got.code != 200 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	want := http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json; charset=utf-8"}, "Content-Length": {"13"}, "Accept": {"application/json"},
		"Accept-Encoding": {"br"}, "User-Agent": {"sdk/1.0"}, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"one", "two"},
		"X-Platform-Tools": {"disabled"}, "X-Orka-Tools": {"disabled"}, "X-Request-Id": {"req-1"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	if diff := cmp.Diff(want, in.last(t).header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if got.header.Get("X-Request-Id") != "req-1" {
		t.Errorf("header of the answer %v", got.header)
	}
	s.call(t, "GET", "/anthropic/v1/models", "", "X-Api-Key", key, "User-Agent", "")
	last := in.last(t)
	if diff := cmp.Diff(http.Header{"Authorization": {"Bearer " + key}, "Accept-Encoding": {"gzip"}, "X-Request-Id": {last.header.Get("X-Request-Id")}}, last.header); diff != "" {
		t.Errorf("header with a key (-want +got):\n%s", diff)
	}
}

// The router removes what an installation answers about cookies, caches, CORS or the hostname.
func TestHeadersFromTheInstallation(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.serve = func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Cache-Control": "public, max-age=3600", "Expires": "Thu, 01 Dec 2099 16:00:00 GMT", "Age": "5", "Set-Cookie": "a=b", "Pragma": "cache",
			"Access-Control-Allow-Origin": "https://evil.example", "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "*",
			"Strict-Transport-Security": "max-age=1", "Clear-Site-Data": "*", "Alt-Svc": `h3=":1"`, "Connection": "X-Hop", "X-Hop": "1",
			"Content-Type": "application/json", "X-Ratelimit-Remaining": "9", "Request-Id": "r", "X-Request-Id": "from-installation", "Vary": "Accept",
		} {
			w.Header().Set(name, value)
		}
		_, _ = w.Write([]byte(`{}`))
	}
	s := start(t, h, map[string]string{"team-a": in.URL}, func(o *router.Options) { o.Origins = []string{"https://page.example"} })
	got := s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+h.token(t, "team-a", "client"), "Origin", "https://page.example")
	delete(got.header, "Date")
	want := http.Header{
		"Cache-Control": {"private, no-store"}, "Content-Type": {"application/json"}, "Content-Length": {"2"}, "X-Ratelimit-Remaining": {"9"},
		"Request-Id": {"r"}, "X-Request-Id": {"from-installation"}, "Vary": {"Origin", "Accept"},
		"Access-Control-Allow-Origin": {"https://page.example"}, "Access-Control-Expose-Headers": {"Request-Id, Retry-After, X-Request-Id"},
	}
	if diff := cmp.Diff(want, got.header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
}

// The router answers a browser's preflight request itself: without a credential, and without allowing cookies.
func TestPreflight(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	anyPage := start(t, h, map[string]string{"team-a": in.URL})
	onePage := start(t, h, map[string]string{"team-a": in.URL}, func(o *router.Options) { o.Origins = []string{"https://page.example"} })
	ask := func(s *shared, path, origin string) reply {
		return s.call(t, http.MethodOptions, path, "", "Origin", origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "anthropic-dangerous-direct-browser-access,x-api-key,x-stainless-lang")
	}
	for _, op := range operations() {
		got := ask(anyPage, op[1], "https://any.example")
		if got.code != 204 || got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%v: %d %v", op, got.code, got.header)
		}
		allowed := strings.Split(strings.ToLower(got.header.Get("Access-Control-Allow-Headers")), ", ")
		for _, name := range []string{"authorization", "x-api-key", "content-type", "anthropic-version", "x-platform-tools", "anthropic-dangerous-direct-browser-access", "x-stainless-os"} {
			if !slices.Contains(allowed, name) {
				t.Errorf("%v: header %s is not allowed: %v", op, name, allowed)
			}
		}
	}
	if got := ask(onePage, "/openai/v1/models", "https://page.example"); got.header.Get("Access-Control-Allow-Origin") != "https://page.example" || got.header.Get("Vary") != "Origin" {
		t.Errorf("%d %v", got.code, got.header)
	}
	if got := ask(onePage, "/openai/v1/models", "https://other.example"); got.header.Get("Access-Control-Allow-Origin") != "" || got.header.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("%d %v", got.code, got.header)
	}
	if got := ask(anyPage, "/openai/v1/embeddings", "https://any.example"); got.code != 404 {
		t.Errorf("%d %v", got.code, got.header)
	}
	if len(in.requests()) != 0 {
		t.Error("a question reached the installation")
	}
}

// Probes report the state of the listener, whatever the installations do.
func TestProbes(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	s := start(t, h, map[string]string{"team-a": "http://127.0.0.1:1"})
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := s.call(t, "GET", path, ""); got.code != 200 || got.body != `{"status":"ok"}`+"\n" {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
}
