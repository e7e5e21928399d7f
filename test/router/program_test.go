// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// The program stops when its requests have ended, and uses no proxy from its environment.
func TestProgram(t *testing.T) {
	t.Parallel()
	bin := kit.Bin(t, "platform-router")
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.next = make(chan struct{})
	proxied := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { proxied++ }))
	t.Cleanup(proxy.Close)
	s := &shared{routesFile: filepath.Join(t.TempDir(), "routes.yaml")}
	s.writeRoutes(t, map[string]string{"team-a": in.URL, "team-b": "http://installation.invalid"})
	kubeconfig := h.kubeconfig(t)
	h.awaitReviews(t, kubeconfig)
	p := kit.Start(t, []string{"HTTP_PROXY=" + proxy.URL, "HTTPS_PROXY=" + proxy.URL, "NO_PROXY=", "PLATFORM_CORS_ALLOWED_ORIGINS=https://page.example"},
		bin, "--bind-address", "127.0.0.1:0", "--routes-file", s.routesFile, "--kubeconfig", kubeconfig)
	s.url = "http://" + regexp.MustCompile(`address="([^"]+)"`).FindStringSubmatch(p.Await(t, "Serving"))[1]

	tokenA, tokenB := h.token(t, "team-a", "client"), h.token(t, "team-b", "client")
	got := s.call(t, "GET", "/openai/v1/models", "", "Authorization", "Bearer "+tokenB, "Origin", "https://page.example")
	if got.code != 503 || got.header.Get("Access-Control-Allow-Origin") != "https://page.example" || proxied != 0 {
		t.Errorf("an installation without an address: %d %s %v; %d requests to the proxy", got.code, got.body, got.header, proxied)
	}
	res := s.open(t, http.DefaultTransport, "/anthropic/v1/messages", `{"stream":true}`, "X-Api-Key", tokenA)
	ended := make(chan error, 1)
	go func() { ended <- p.Stop() }()
	p.Await(t, "Stopping")
	close(in.next)
	if data, err := io.ReadAll(res.body); err != nil || !strings.Contains(string(data), "installation-a") {
		t.Errorf("the stream under way: %q, %v", data, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the program ended with: %v", err)
	}
	for _, secret := range s.secrets {
		if strings.Contains(p.Output(), secret) {
			t.Errorf("a secret is in the log: %s", secret)
		}
	}
}

// A second signal ends the program at once.
func TestProgramSecondSignal(t *testing.T) {
	t.Parallel()
	bin := kit.Bin(t, "platform-router")
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	in.next = make(chan struct{})
	defer close(in.next)
	s := &shared{routesFile: filepath.Join(t.TempDir(), "routes.yaml")}
	s.writeRoutes(t, map[string]string{"team-a": in.URL})
	kubeconfig := h.kubeconfig(t)
	h.awaitReviews(t, kubeconfig)
	p := kit.Start(t, nil, bin, "--bind-address", "127.0.0.1:0", "--routes-file", s.routesFile, "--kubeconfig", kubeconfig)
	s.url = "http://" + regexp.MustCompile(`address="([^"]+)"`).FindStringSubmatch(p.Await(t, "Serving"))[1]
	s.open(t, http.DefaultTransport, "/openai/v1/chat/completions", `{"stream":true}`, "Authorization", "Bearer "+h.token(t, "team-a", "client"))
	if err := syscall.Kill(p.Pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.Await(t, "Stopping")
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	kit.Await(t, "the end of the program", func() bool {
		_ = syscall.Kill(p.Pid(), syscall.SIGTERM) // sent again, because a signal that arrives together with the first is merged with it
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the program ended as if its requests had")
			}
			return true
		default:
			return false
		}
	})
}

// A program that cannot start reports why, with the flag and the path of what is wrong, and never quotes what may be
// secret.
func TestProgramRefusesToStart(t *testing.T) {
	t.Parallel()
	bin := kit.Bin(t, "platform-router")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, broken := file("good.yaml", "namespaces: {}"), file("broken.yaml", "namespaces: {team-a: 'https://user:canary-password@host'}")
	kubeconfig := file("kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\ncurrent-context: c\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no routes":      {[]string{"--routes-file", dir + "/none.yaml"}, "--routes-file: open " + dir + "/none.yaml"},
		"wrong routes":   {[]string{"--routes-file", broken}, "--routes-file: " + broken + `: namespaces["team-a"]: must have no credentials`},
		"no cluster":     {[]string{"--routes-file", good}, "--kubeconfig: "},
		"no kubeconfig":  {[]string{"--routes-file", good, "--kubeconfig", dir + "/none"}, "--kubeconfig: "},
		"half a key":     {[]string{"--routes-file", good, "--tls-cert-file", good}, "--tls-cert-file and --tls-private-key-file belong together"},
		"no certificate": {[]string{"--routes-file", good, "--kubeconfig", kubeconfig, "--tls-cert-file", good, "--tls-private-key-file", good}, "--tls-cert-file, --tls-private-key-file: "},
		"no authority":   {[]string{"--routes-file", good, "--kubeconfig", kubeconfig, "--origin-ca-file", good}, "--origin-ca-file: " + good},
		"no address":     {[]string{"--routes-file", good, "--kubeconfig", kubeconfig, "--bind-address", "nowhere"}, "--bind-address: "},
		"no metrics":     {[]string{"--routes-file", good, "--kubeconfig", kubeconfig, "--bind-address", "127.0.0.1:0", "--metrics-bind-address", "nowhere"}, "--metrics-bind-address: "},
		"no time":        {[]string{"--routes-file", good, "--read-timeout", "0s"}, "--read-timeout: "},
		"negative time":  {[]string{"--routes-file", good, "--routes-reload-interval", "-1s"}, "--routes-reload-interval: "},
		"an argument":    {[]string{"team-a"}, "team-a"},
	} {
		out, err := exec.CommandContext(t.Context(), bin, tc.args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "platform-router: ") || !strings.Contains(string(out), tc.want) || strings.Contains(string(out), "canary-password") {
			t.Errorf("%s: %v, %s; want %q", name, err, out, tc.want)
		}
	}
}
