// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// provider starts the OpenID provider of walls/provider.mjs, and returns its address.
func provider(t *testing.T, redirect string) string {
	t.Helper()
	kit.Needs(t, kit.NPM)
	cmd := exec.CommandContext(context.Background(), "node", "walls/provider.mjs")
	cmd.Env = append(os.Environ(), "REDIRECT="+redirect)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return lines.Text()
		}
	}
	t.Fatal("the provider ended")
	return ""
}

// People log in at an OpenID provider; the server gets the token, and the page never has it.
func TestProvider(t *testing.T) {
	t.Parallel()
	address := "127.0.0.1:" + kit.FreePort(t)
	issuer := provider(t, "http://"+address+"/console/provider/callback")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret/with+signs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *standalone.Options) {
		o.RESTBindAddress = address
		p := &o.Identity.OIDC
		p.Issuer, p.Audience, p.AllowedSubjects, p.Namespace = issuer, "console", []string{"ann-?"}, "team"
		p.ClientID, p.ClientSecretFile = "console", secret
	})
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "dev"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "platform-viewer"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "oidc:dev"}},
	}
	if _, err := s.Kubernetes(t).RbacV1().RoleBindings("team").Create(t.Context(), b, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	page := &browser{t: t, base: s.RESTURL, key: "new"}
	for name, header := range map[string][]string{
		"another page": {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, "no page": {"Origin", "", console.HeaderKey, ""},
	} {
		if a := page.send(http.MethodPost, "/console/provider", "", header...); a.Code != http.StatusForbidden || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("a login begun by %s: %d %s", name, a.Code, a.Body)
		}
	}
	for _, path := range []string{"/console/provider/callback", "/console/provider/callback?state=&code=x"} {
		if a := page.send(http.MethodGet, path, ""); a.Code != http.StatusSeeOther || a.Header.Get("Location") != "/console/login#error=other" {
			t.Errorf("%s: %d %v", path, a.Code, a.Header)
		}
	}
	script(t, "provider_login.mjs", 3, "BASE="+s.RESTURL)
}
