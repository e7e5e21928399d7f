// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/test/console/scene"
)

// local runs platform console until the end of the test, and returns where it serves, and the secret of its link.
func (s *server) local(args ...string) (base, secret string) {
	s.t.Helper()
	return scene.Console(s.t, append([]string{"--kubeconfig", s.Kubeconfig}, args...)...)
}

// platform console gives a browser the rights of the kubeconfig for a link that works once, and nobody else anything.
func TestLocal(t *testing.T) {
	t.Parallel()
	s := start(t)
	base, secret := s.local("-n", "team")
	b := &browser{t: t, base: base, key: "new"}
	outside := func(name string, b *browser, header ...string) {
		t.Helper()
		for _, path := range []string{native, "/api/v1/namespaces", "/apis", "/version", tasks, "/metrics", "/backup", "/api/v1/namespaces/default/secrets"} {
			if a := b.send(http.MethodGet, path, "", header...); a.Code != 401 && a.Code != 403 && a.Code != 421 {
				t.Errorf("%s: %s: %d %s", name, path, a.Code, a.Body)
			}
		}
	}
	outside("another user", b)
	outside("with the secret of the link as a token", b, "Authorization", "Bearer "+secret)
	for name, header := range map[string][]string{
		"a guess":        {"Authorization", "Once x"},
		"a token":        {"Authorization", "Bearer " + s.token("ann", "platform-viewer")},
		"another page":   {"Authorization", "Once " + secret, "Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"},
		"another name":   {"Authorization", "Once " + secret, "Host", "evil.example", "Origin", "http://evil.example"},
		"without header": {"Authorization", "Once " + secret, console.HeaderKey, ""},
	} {
		if a := b.send(http.MethodPost, "/console/session", "", header...); a.Code < 400 || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("login with %s: %d %s", name, a.Code, a.Body)
		}
	}
	if a := b.login("Once " + secret); a.Code != http.StatusCreated || !strings.Contains(a.Body, `"namespace":"team"`) {
		t.Fatalf("login: %d %s", a.Code, a.Body)
	}
	thief := &browser{t: t, base: base}
	if a := thief.login("Once " + secret); a.Code != http.StatusUnauthorized || !strings.Contains(a.Body, "used already") {
		t.Errorf("the link works twice: %d %s", a.Code, a.Body)
	}
	outside("without the key", &browser{t: t, base: base, cookie: b.cookie})
	outside("without the cookie", &browser{t: t, base: base, key: b.key})
	outside("by another name", b, "Host", "evil.example")
	outside("another page", b, "Sec-Fetch-Site", "same-site")

	a := b.send(http.MethodPost, native, strings.Replace(oneTask, "NAME", "a", 1), "Content-Type", "application/json")
	if a.Code != http.StatusCreated {
		t.Errorf("create: %d %s", a.Code, a.Body)
	}
	for _, path := range []string{native, tasks, "/api/v1/auth/whoami"} {
		a := b.send(http.MethodGet, path, "")
		if a.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.Code, a.Body)
		}
		protected(t, path, a)
	}
	if a := b.send(http.MethodGet, native, "", "Impersonate-User", "nobody"); a.Code != http.StatusOK {
		t.Errorf("the page changes who asks: %d %s", a.Code, a.Body)
	}
	for _, path := range []string{"/metrics", "/backup", "/healthz"} {
		if a := b.send(http.MethodGet, path, ""); a.Code != http.StatusUnauthorized {
			t.Errorf("%s, which the page does not need: %d", path, a.Code)
		}
	}
	if list, err := s.Kubernetes(t).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) == 0 {
		t.Errorf("the server afterwards: %v", err)
	}
	b.send(http.MethodDelete, "/console/session", "")
	outside("after the logout", b)
}

// The command uses exactly the identity that it is given.
func TestLocalIdentity(t *testing.T) {
	t.Parallel()
	s := start(t)
	base, secret := s.local("--token", s.token("ann", "platform-viewer"), "-n", "team")
	b := &browser{t: t, base: base}
	if a := b.login("Once " + secret); a.Code != http.StatusCreated || !strings.Contains(a.Body, "serviceaccount:team:ann") {
		t.Fatalf("login: %d %s", a.Code, a.Body)
	}
	for path, want := range map[string]int{native: 200, "/api/v1/namespaces/team/secrets": 403} {
		if a := b.send(http.MethodGet, path, ""); a.Code != want {
			t.Errorf("%s: %d, want %d", path, a.Code, want)
		}
	}
}
