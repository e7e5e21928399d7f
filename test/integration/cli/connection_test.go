// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/cli"
	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/oauthprovider"
	"github.com/platform-ai/platform/test/tokenservice"
)

// browserBase is the address that browsers know the server by. Nothing is there: the test follows redirects itself.
const browserBase = "https://platform.test"

// accounts is a server with a provider, at which people link accounts by the command.
type accounts struct {
	*standalone.Platform

	provider *oauthprovider.Provider
	tokens   *tokenservice.Service
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	a := &accounts{provider: oauthprovider.New(t), tokens: tokenservice.New(t)}
	a.start(t)
	a.Namespaces(t, "team")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: oauthprovider.Secret}, StringData: map[string]string{"secret": oauthprovider.ClientSecret}}
	kit.Must[*corev1.Secret](t)(a.Kubernetes(t).CoreV1().Secrets("team").Create(t.Context(), secret, metav1.CreateOptions{}))
	p := &v1alpha1.ConnectorProvider{}
	if err := yaml.UnmarshalStrict([]byte(oauthprovider.Manifest()), p); err != nil {
		t.Fatal(err)
	}
	kit.Must[*v1alpha1.ConnectorProvider](t)(a.API().ConnectorProviders("team").Create(t.Context(), p, metav1.CreateOptions{}))
	return a
}

// start starts a server for the provider and the people.
func (a *accounts) start(t *testing.T, configure ...func(*standalone.Options)) {
	t.Helper()
	enabled := func(o *standalone.Options) {
		o.Connectors.Enabled, o.Connectors.CallbackBase, o.Connectors.Transport = true, browserBase, a.provider.Transport()
		o.Identity.OIDC = external.OIDC{Issuer: a.tokens.URL, Audience: "platform", JWKSURL: a.tokens.URL, AllowedSubjects: []string{"user-*"}, Namespace: "team"}
	}
	a.Platform = standalone.NewPlatform(t, "exit 0", append([]func(*standalone.Options){standalone.OnAPort(t), enabled}, configure...)...)
}

// person returns a kubeconfig with the token of a person, whose namespace is team.
func (a *accounts) person(subject string) string {
	a.T.Helper()
	token := kit.Must[string](a.T)(a.tokens.Sign("at+jwt", tokenservice.Claims{"sub": subject}))
	c := kit.Must[*clientcmdapi.Config](a.T)(clientcmd.LoadFromFile(a.Kubeconfig))
	for name := range c.AuthInfos {
		c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	}
	for _, at := range c.Contexts {
		at.Namespace = "team"
	}
	file := filepath.Join(a.T.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		a.T.Fatal(err)
	}
	kit.Await(a.T, "the keys of the issuer", func() bool { _, _, code := standalone.Command(a.T.Context(), file, "auth", "whoami"); return code == 0 })
	return file
}

// awaitProvider waits until accounts can be linked at the provider.
func (a *accounts) awaitProvider(kubeconfig string) {
	a.T.Helper()
	kit.Await(a.T, "the provider", func() bool {
		out, _, code := standalone.Command(a.T.Context(), kubeconfig, "connection", "providers")
		return code == 0 && strings.Contains(out, "True       True")
	})
}

// connecting is `platform connection connect` at work.
type connecting struct {
	authorizeURL string
	rest         *bytes.Buffer // of its output, once done
	errs         *bytes.Buffer
	done         chan int
}

// connect runs the command until it has printed where consent is given.
func (a *accounts) connect(kubeconfig string, args ...string) *connecting {
	a.T.Helper()
	in, out := io.Pipe()
	c := &connecting{rest: &bytes.Buffer{}, errs: &bytes.Buffer{}, done: make(chan int, 1)}
	ctx, cancel := context.WithTimeout(a.T.Context(), kit.Patience)
	a.T.Cleanup(cancel)
	code := make(chan int, 1)
	go func() {
		all := append([]string{"--kubeconfig", kubeconfig, "connection", "connect", "provider", "--no-browser"}, args...)
		code <- cli.Main(ctx, "platform", all, cli.Streams{In: strings.NewReader(""), Out: out, Err: c.errs})
		_ = out.Close() // a pipe: it cannot fail
	}()
	lines := bufio.NewReader(in)
	for c.authorizeURL == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			a.T.Fatalf("connect ends with exit code %d: %s", <-code, c.errs)
		}
		if address := strings.TrimSpace(line); strings.HasPrefix(address, oauthprovider.AuthorizeURL) {
			c.authorizeURL = address
		}
	}
	go func() {
		_, _ = io.Copy(c.rest, lines) // until the pipe is closed
		c.done <- <-code
	}()
	return c
}

// ends checks how the command ends.
func (a *accounts) ends(c *connecting, code int, out, errs string) {
	a.T.Helper()
	if got := <-c.done; got != code || !strings.Contains(c.rest.String(), out) || !strings.Contains(c.errs.String(), errs) {
		a.T.Errorf("connect: exit code %d, want %d\n%s%s\nwant %q and %q", got, code, c.rest, c.errs, out, errs)
	}
}

// consent has the person consent in a browser, and returns the address to which the server sends that on.
func (a *accounts) consent(c *connecting) string {
	a.T.Helper()
	path, ok := strings.CutPrefix(a.provider.Consent(a.T, c.authorizeURL), browserBase)
	if !ok {
		a.T.Fatalf("the provider sends people to %s", path)
	}
	browser := a.Stranger(a.T)
	browser.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp := browser.Open(a.T.Context(), http.MethodGet, path, "")
	defer resp.Body.Close()
	to := resp.Header.Get("Location")
	if !strings.Contains(to, "status=pending") || !strings.Contains(to, "#completion=") {
		a.T.Fatalf("callback: %s %s", resp.Status, to)
	}
	return to
}

// complete runs the command that finishes a consent.
func (a *accounts) complete(kubeconfig, name, stdin string) (out, errs string, code int) {
	var o, e bytes.Buffer
	code = cli.Main(a.T.Context(), "platform", []string{"--kubeconfig", kubeconfig, "connection", "complete", name}, cli.Streams{In: strings.NewReader(stdin), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

// TestConnectionCommands: a person links an account by the command, finishes the consent with what the browser was given, widens it, and
// disconnects.
func TestConnectionCommands(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	ann, bob := a.person("user-ann"), a.person("user-bob")
	a.awaitProvider(ann)
	play(t, ann, []step{
		{"connection providers", 0, "provider", ""},
		{"connections providers -o jsonpath={.items[*].spec.oauth.scopes.write[*]}", 0, "write", ""},
		{"connection list", 0, "", "nothing found"},
		{"connection connect missing", 1, "", `"missing" not found`},
		{"connection connect provider --mode all", 1, "", `--mode: "all" is not one of readOnly, readWrite`},
		{"connection disconnect none --yes", 1, "", `"none" not found`},
	})

	// The first consent, finished with the token alone.
	first := a.connect(ann)
	page := a.consent(first)
	var list v1alpha1.ConnectionList
	out, errs, _ := standalone.Command(t.Context(), ann, "connection", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 || list.Items[0].Status.State != v1alpha1.ConnectionPending {
		t.Fatalf("list: %v\n%s%s", err, out, errs)
	}
	name := list.Items[0].Name
	_, token, _ := strings.Cut(page, "#completion=")
	if out, errs, code := a.complete(bob, name, token); code != 1 || !strings.Contains(errs, "not found") {
		t.Errorf("another person completes: exit code %d\n%s%s", code, out, errs)
	}
	if out, errs, code := a.complete(ann, name, token+"\n"); code != 0 || !strings.Contains(out, "connection "+name+" linked: readOnly, granted read\n") {
		t.Fatalf("complete: exit code %d\n%s%s", code, out, errs)
	}
	a.ends(first, 0, "connection "+name+" linked: readOnly, granted read\n", "")
	if out, errs, code := a.complete(ann, name, token); code != 1 || !strings.Contains(errs, "was used") || strings.Contains(out+errs, token) {
		t.Errorf("complete once more: exit code %d\n%s%s", code, out, errs)
	}

	// A wider one, finished with the address of the page. Only a newer consent than the first ends the waiting.
	wider := a.connect(ann, "--mode", "readWrite")
	if out, errs, code := a.complete(ann, name, a.consent(wider)); code != 0 || !strings.Contains(out, "linked: readWrite, granted read write\n") {
		t.Errorf("complete: exit code %d\n%s%s", code, out, errs)
	}
	a.ends(wider, 0, "linked: readWrite", "")
	play(t, ann, []step{
		{"connection list", 0, "Ready", ""},
		{"connection get " + name + " -o jsonpath={.status.grantSequence}", 0, "2", ""},
		{"connection list -o wide", 0, "user-ann", ""},
	})
	play(t, bob, []step{
		{"connection list", 0, "", "nothing found"},
		{"connection get " + name, 1, "", "not found"},
		{"connection disconnect " + name + " --yes", 1, "", "not found"},
	})
	// An administrator is no person, and sees no token.
	play(t, a.Kubeconfig, []step{
		{"connection connect provider -n team", 1, "", "which person asks"},
		{"connection get " + name + " -n team", 0, "readWrite", ""},
	})
	out, _, _ = standalone.Command(t.Context(), a.Kubeconfig, "connection", "list", "-A", "-o", "yaml")
	for _, secret := range append(a.provider.Secrets(), token) {
		if strings.Contains(out, secret) {
			t.Errorf("the administrator sees %s:\n%s", secret, out)
		}
	}

	// Disconnecting asks, ends a connect that waits, and gives back both grants.
	waits := a.connect(ann)
	play(t, ann, []step{{"connection disconnect " + name, 1, "", "add --yes"}, {"connection disconnect " + name + " --yes", 0, "connection " + name + " disconnected\n", "waiting"}})
	a.ends(waits, 3, "", "connection "+name+" was disconnected meanwhile")
	play(t, ann, []step{{"connection list", 0, "", "nothing found"}})
	if got := a.provider.Revoked(); len(got) != 2 {
		t.Errorf("revoked: %v", got)
	}
}

// TestBackupOfLinkedAccounts: a backup has no token that can be read, a restore says which key is missing, and with the key the accounts of
// the restored server can be given back.
func TestBackupOfLinkedAccounts(t *testing.T) {
	t.Parallel()
	a := newAccounts(t)
	ann := a.person("user-ann")
	a.awaitProvider(ann)
	c := a.connect(ann)
	name, _, _ := standalone.Command(t.Context(), ann, "connection", "list", "-o", "jsonpath={.items[0].metadata.name}")
	if out, errs, code := a.complete(ann, name, a.consent(c)); code != 0 {
		t.Fatalf("complete: exit code %d\n%s%s", code, out, errs)
	}
	a.ends(c, 0, "linked", "")
	file := filepath.Join(t.TempDir(), "x.tar")
	play(t, a.Kubeconfig, []step{{"backup " + file, 0, "backup of revision", ""}})
	raw := kit.Must[[]byte](t)(os.ReadFile(file))
	for _, secret := range a.provider.Secrets() {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the backup has %s", secret)
		}
	}

	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(a.DataDir, "pki"))); err != nil {
		t.Fatal(err)
	}
	const key = "connections.key"
	for i, want := range []string{"People have linked accounts in this store (1), and " + dir + " has no " + key, ""} {
		if i == 1 {
			if err := os.RemoveAll(filepath.Join(dir, "store")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, key), kit.Must[[]byte](t)(os.ReadFile(filepath.Join(a.DataDir, key))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out, errs bytes.Buffer
		cmd := server.NewRestoreCommand("platform-standalone")
		cmd.SetArgs([]string{file, "--data-dir", dir})
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(errs.String(), want) || (errs.Len() > 0) != (want != "") {
			t.Fatalf("restore: %v\n%s%s\nwant %q", err, &out, &errs, want)
		}
	}
	a.start(t, func(o *standalone.Options) { o.DataDir = dir })
	ann = a.person("user-ann")
	play(t, ann, []step{{"connection get " + name + " -o jsonpath={.status.state}", 0, "Ready", ""}, {"connection disconnect " + name + " -y", 0, "disconnected", ""}})
	if got := a.provider.Revoked(); len(got) != 1 {
		t.Errorf("revoked: %v", got)
	}
}
