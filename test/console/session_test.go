// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

const (
	tasks   = "/api/v1/tasks?namespace=team"
	native  = "/apis/core.platform.ai/v1alpha1/namespaces/team/tasks"
	oneTask = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"NAME"},"spec":{"type":"container","command":["true"]}}`
)

// A token is exchanged for a session, which has the token's rights on REST and native paths, until it is ended.
func TestSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.enter(s.token("ann", "platform-viewer"))
	if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 || !c.Expires.IsZero() {
		t.Errorf("the cookie is %v", c)
	}
	for _, path := range []string{tasks, native, "/api/v1/auth/whoami"} {
		a := b.send(http.MethodGet, path, "")
		if a.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
		protected(t, path, a)
	}
	if a := b.send(http.MethodGet, "/api/v1/auth/whoami", ""); !strings.Contains(a.Body, "system:serviceaccount:team:ann") {
		t.Errorf("whoami: %s", a.Body)
	}
	if a := b.send(http.MethodPost, native, strings.Replace(oneTask, "NAME", "a", 1), "Content-Type", "application/json"); a.Code != http.StatusForbidden {
		t.Errorf("a viewer creates a task: %d %s", a.Code, a.Body)
	}
	if a := b.send(http.MethodGet, "/console/session", ""); a.Code != http.StatusOK || !strings.Contains(a.Body, `"namespace":"team"`) {
		t.Errorf("the session: %d %s", a.Code, a.Body)
	}
	editor := s.enter(s.token("eve", "platform-editor"))
	if a := editor.send(http.MethodPost, native, strings.Replace(oneTask, "NAME", "b", 1), "Content-Type", "application/json"); a.Code != http.StatusCreated {
		t.Errorf("an editor creates a task: %d %s", a.Code, a.Body)
	}
	if a := b.send(http.MethodDelete, "/console/session", ""); a.Code != http.StatusOK || !strings.Contains(a.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", a.Code, a.Header)
	}
	for _, path := range []string{tasks, native, "/console/session"} {
		if a := b.send(http.MethodGet, path, ""); a.Code != http.StatusUnauthorized {
			t.Errorf("%s after the logout: %d", path, a.Code)
		}
	}
	if a := editor.send(http.MethodGet, tasks, ""); a.Code != http.StatusOK {
		t.Errorf("another session after the logout: %d", a.Code)
	}
}

// protected checks the headers that every answer to a page has.
func protected(t testing.TB, path string, a host.Answer) {
	t.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("%s: policy %q", path, policy)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
	} {
		if got := a.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s is %q, want %q", path, name, got, want)
		}
	}
}

// Half of what a session takes is nothing, and neither is what comes from another page.
func TestNotASession(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := s.token("eve", "platform-editor")
	b, other := s.enter(token), s.enter(token)
	create := func(header ...string) host.Answer {
		return b.send(http.MethodPost, native, strings.Replace(oneTask, "NAME", "evil", 1), append(header, "Content-Type", "application/json")...)
	}
	for name, c := range map[string]struct {
		header []string
		want   []int
	}{
		"the cookie alone":           {[]string{console.HeaderKey, ""}, []int{401, 404}},
		"the key alone":              {[]string{"Cookie", ""}, []int{401, 404}},
		"the key of another session": {[]string{console.HeaderKey, other.key}, []int{401}},
		"a guess":                    {[]string{console.HeaderKey, "x"}, []int{401}},
		"another cookie":             {[]string{"Cookie", b.cookie.Name + "=x"}, []int{401}},
		"two cookies":                {[]string{"Cookie", b.cookie.Name + "=x; " + b.cookie.String()}, []int{401, 404}},
		"another origin":             {[]string{"Origin", "https://evil.example"}, []int{403}},
		"no origin in its frame":     {[]string{"Origin", "null"}, []int{403}},
		"another port":               {[]string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}, []int{403}},
		"cross-site":                 {[]string{"Sec-Fetch-Site", "cross-site"}, []int{403}},
		"same-site":                  {[]string{"Sec-Fetch-Site", "same-site"}, []int{403}},
		"a navigation":               {[]string{"Sec-Fetch-Site", "none"}, []int{403}},
		"a name that leads here":     {[]string{"Host", "evil.example", "Origin", "http://evil.example"}, []int{421}},
	} {
		t.Run(name, func(t *testing.T) {
			ok := func(code int) bool { return slices.Contains(c.want, code) }
			if a := create(c.header...); !ok(a.Code) {
				t.Errorf("POST: %d %s", a.Code, a.Body)
			}
			for _, path := range []string{native, tasks} {
				if a := b.send(http.MethodGet, path, "", c.header...); !ok(a.Code) || strings.Contains(a.Body, `"items"`) {
					t.Errorf("GET %s: %d %s", path, a.Code, a.Body)
				}
			}
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				if a := b.send(method, "/console/session", "", append(c.header, "Authorization", "")...); a.Code < 400 && (method != http.MethodDelete || a.Code != 200) {
					t.Errorf("%s /console/session: %d %s", method, a.Code, a.Body)
				}
			}
		})
	}
	if a := b.send(http.MethodGet, native, ""); a.Code != http.StatusOK || strings.Contains(a.Body, "evil") {
		t.Errorf("the session after all this: %d %s", a.Code, a.Body)
	}
	// A session does not reach what the page does not need, and a credential of the request counts before it.
	for _, path := range []string{"/metrics", "/backup", "/openai/v1/models", "/internal/v1/tools"} {
		if a := b.send(http.MethodGet, path, ""); a.Code < 400 {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	if a := b.send(http.MethodGet, tasks, "", "Authorization", "Bearer x"); a.Code != http.StatusUnauthorized {
		t.Errorf("with another credential: %d", a.Code)
	}
}

// The login accepts tokens that the API accepts, from its own page, and says no more than that.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := s.token("ann", "platform-viewer")
	b := &browser{t: t, base: s.RESTURL, key: "new"}
	for name, header := range map[string][]string{
		"nothing":           {"Authorization", ""},
		"another scheme":    {"Authorization", "Basic " + token},
		"no token":          {"Authorization", "Bearer "},
		"not valid":         {"Authorization", "Bearer " + token + "x"},
		"another page":      {"Authorization", "Bearer " + token, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"without a header":  {"Authorization", "Bearer " + token, console.HeaderKey, ""},
		"a link's secret":   {"Authorization", "Once " + token},
		"a name leads here": {"Authorization", "Bearer " + token, "Host", "evil.example"},
	} {
		a := b.send(http.MethodPost, "/console/session", "", header...)
		if a.Code < 400 || a.Header.Get("Set-Cookie") != "" || strings.Contains(a.Body, token) {
			t.Errorf("%s: %d %v %s", name, a.Code, a.Header, a.Body)
		}
	}
	// The login has no body, so none is read.
	if a := b.send(http.MethodPost, "/console/session", strings.Repeat("x", 1<<20), "Authorization", "Bearer "+token); a.Code != http.StatusCreated {
		t.Errorf("with a body: %d %s", a.Code, a.Body)
	}
}

// A session ends with its token, and so do its open streams; it also ends by itself.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.enter(s.token("ann", "platform-viewer"))
	client, err := versioned.NewForConfig(s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	if _, err := client.CoreV1alpha1().Tasks("team").Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	open := func(b *browser) *bufio.Reader {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.RESTURL+native+"/a/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(b.cookie)
		req.Header.Set(console.HeaderKey, b.key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("stream: %s", resp.Status)
		}
		return bufio.NewReader(resp.Body)
	}
	stream := open(b)
	b.send(http.MethodDelete, "/console/session", "")
	for { // until the stream ends, which the logout does
		if _, err := stream.ReadString('\n'); err != nil {
			break
		}
	}
	b = s.enter(s.token("ann", ""))
	if err := s.Kubernetes(t).CoreV1().ServiceAccounts("team").Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if a := b.send(http.MethodGet, tasks, ""); a.Code != http.StatusUnauthorized {
		t.Errorf("after the token was revoked: %d %s", a.Code, a.Body)
	}

	now := &quickclock.Ahead{}
	short := start(t, func(o *standalone.Options) { o.Clock, o.ConsoleLife = now, 10*time.Minute }) // less than a token's life
	b = short.enter(short.token("ann", "platform-viewer"))
	if a := b.send(http.MethodGet, tasks, ""); a.Code != http.StatusOK {
		t.Errorf("at the beginning: %d %s", a.Code, a.Body)
	}
	now.By.Store(int64(10*time.Minute + time.Second))
	if a := b.send(http.MethodGet, tasks, ""); a.Code != http.StatusUnauthorized {
		t.Errorf("after the session's life: %d %s", a.Code, a.Body)
	}
}

// The files of the console are served on both listeners, and every answer has the headers that protect it.
func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := &browser{t: t, base: s.RESTURL}
	for path, want := range map[string]int{
		"/console": 302, "/console/": 200, "/console/tasks/team/a": 200, "/console/login": 200, "/console/login.js": 200, "/console/none.js": 404,
		"/console/session": 403, "/console/ways": 200,
	} {
		a := b.send(http.MethodGet, path, "", console.HeaderKey, "")
		if a.Code != want {
			t.Errorf("%s: %d, want %d", path, a.Code, want)
		}
		protected(t, path, a)
		if path == "/console/" && !strings.Contains(a.Header.Get("Content-Security-Policy"), "require-trusted-types-for 'script'") {
			t.Errorf("the page does not need Trusted Types: %v", a.Header)
		}
	}
	if a := b.send(http.MethodGet, "/", "", "Sec-Fetch-Mode", "navigate"); a.Code != http.StatusFound || a.Header.Get("Location") != "/console/" {
		t.Errorf("a person opens the address: %d %v", a.Code, a.Header)
	}
	if a := b.send(http.MethodGet, "/", ""); a.Code != http.StatusNotFound {
		t.Errorf("a client opens the address: %d", a.Code)
	}
	off := start(t, func(o *standalone.Options) { o.Console = false })
	for _, path := range []string{"/console", "/console/", "/console/login", "/console/session"} {
		a := (&browser{t: t, base: off.RESTURL}).send(http.MethodGet, path, "")
		if a.Code != http.StatusNotFound || !strings.Contains(a.Body, "--console=false") {
			t.Errorf("switched off, %s: %d %s", path, a.Code, a.Body)
		}
		protected(t, path, a)
	}
	if a := (&browser{t: t, base: off.RESTURL, key: "x"}).login("Bearer " + off.token("ann", "")); a.Code != http.StatusNotFound {
		t.Errorf("login where the console is switched off: %d", a.Code)
	}
}

// With TLS the cookie is bound to the host. A session has the rights of its token, even if the browser also sends the
// certificate of an administrator, and without a session that certificate opens nothing to a page of another origin.
func TestSecure(t *testing.T) {
	t.Parallel()
	s := start(t)
	client, err := rest.HTTPClientFor(s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, base: s.URL, client: client}
	if a := b.login("Bearer " + s.token("ann", "platform-viewer")); a.Code != http.StatusCreated {
		t.Fatalf("login: %d %s", a.Code, a.Body)
	}
	if c := b.cookie; !c.Secure || !strings.HasPrefix(c.Name, "__Host-") || c.Path != "/" || c.Domain != "" || !c.HttpOnly {
		t.Errorf("the cookie is %v", c)
	}
	for path, want := range map[string]int{tasks: 200, native: 200, "/api/v1/secrets?namespace=team": 403, "/api/v1/namespaces/team/secrets": 403} {
		if a := b.send(http.MethodGet, path, ""); a.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, a.Code, want, a.Body)
		}
	}
	if a := b.send(http.MethodGet, "/api/v1/auth/whoami", ""); !strings.Contains(a.Body, "serviceaccount:team:ann") {
		t.Errorf("whoami: %s", a.Body)
	}
	b.send(http.MethodDelete, "/console/session", "")
	if a := b.send(http.MethodGet, "/api/v1/namespaces/team/secrets", ""); a.Code != http.StatusUnauthorized {
		t.Errorf("after the logout the certificate counts: %d %s", a.Code, a.Body)
	}
}
