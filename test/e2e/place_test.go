// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/test/kit"
)

// place is where a scenario runs: a server of its own on this machine, or a
// namespace of its own in a cluster where the platform is installed. Lines of
// shell use the administrator's kubeconfig, with the place's namespace.
type place interface {
	Shell(t testing.TB, line string) kit.Result
	MustShell(t testing.TB, line string) string
	Env(t testing.TB) []string
	// Namespace is where the scenario's objects are.
	Namespace() string
	// Config is the administrator's client configuration.
	Config(t testing.TB) *rest.Config
	// Direct returns the URL of the platform's own server and a client that trusts
	// it. REST requests go there.
	Direct(t testing.TB) (string, *http.Client)
	// RestartServer replaces the API server, and returns when the new one serves.
	RestartServer(t *testing.T)
	// RestartController replaces the process that controls the tasks.
	RestartController(t *testing.T)
	// KillServer kills the process of the API server, and returns when another one serves.
	KillServer(t *testing.T)
	// KillController kills the process that controls the tasks; another one takes its place.
	KillController(t *testing.T)
	// Image is the image in which commands run; empty if they are commands of the host.
	Image() string
	// Address is the address under which workers reach this machine.
	Address() string
	// Data is the folder of everything that the server stores.
	Data() string
	// Records returns what programs logged and what the host's own objects contain about runs.
	Records(t *testing.T) map[string]string
}

// everywhere runs a scenario on each kind of host, on both at the same time. In
// a cluster it runs only if one is up; see "make e2e". A test whose scenario restarts
// nothing of the platform is parallel: all share one installation.
func everywhere(t *testing.T, scenario func(*testing.T, place)) {
	t.Helper()
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		scenario(t, local{kit.StartServer(t, t.TempDir(), "--allow-host-commands")})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		scenario(t, newTeam(t))
	})
}

// local is platform-standalone.
type local struct{ *kit.Server }

func (local) Namespace() string { return "default" }

func (l local) Config(t testing.TB) *rest.Config {
	t.Helper()
	return configOf(t, l.Kubeconfig)
}

func (l local) Direct(t testing.TB) (string, *http.Client) {
	t.Helper()
	c := l.Config(t)
	return c.Host, trusting(t, c.CAData, "", "")
}

func (l local) RestartServer(t *testing.T) {
	t.Helper()
	if err := l.Stop(); err != nil {
		t.Fatal(err)
	}
	l.Restart(t)
}

// RestartController restarts the only process, which is also the server.
func (l local) RestartController(t *testing.T) {
	t.Helper()
	l.RestartServer(t)
}

func (l local) KillServer(t *testing.T) {
	t.Helper()
	l.Kill()
	l.Restart(t)
}

// KillController kills the only process, which is also the server.
func (l local) KillController(t *testing.T) {
	t.Helper()
	l.KillServer(t)
}

func (local) Image() string { return "" }

func (local) Address() string { return "127.0.0.1" }

func (l local) Data() string { return l.DataDir }

func (l local) Records(*testing.T) map[string]string {
	return map[string]string{"log of the server": l.Output()}
}

func configOf(t testing.TB, kubeconfig string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

// trusting returns a client that trusts a CA and, if they are given, reaches name at address.
func trusting(t testing.TB, ca []byte, name, address string) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no certificate to trust")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	if address != "" {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// native returns the path of a resource of the platform in the place's namespace.
func native(p place, path string) string {
	return "/apis/core.platform.ai/v1alpha1/namespaces/" + p.Namespace() + "/" + path
}

// restClient calls REST paths with a token.
type restClient struct {
	t      testing.TB
	base   string
	client *http.Client
	token  string
}

// asAccount makes a ServiceAccount with a role in the place's namespace and a REST client with its token.
func asAccount(t *testing.T, p place, name, role string) restClient {
	t.Helper()
	p.MustShell(t, "kubectl create serviceaccount "+name)
	if role != "" {
		p.MustShell(t, fmt.Sprintf("kubectl create rolebinding %s --clusterrole=%s --serviceaccount=%s:%s", name, role, p.Namespace(), name))
		// The authorizer learns of bindings by a watch, so kubectl asks until it knows the new one.
		p.MustShell(t, fmt.Sprintf("until kubectl auth can-i list tasks --as system:serviceaccount:%s:%s; do :; done", p.Namespace(), name))
	}
	base, client := p.Direct(t)
	token := strings.TrimSpace(p.MustShell(t, "kubectl create token "+name))
	return restClient{t: t, base: base, client: client, token: token}
}

// do sends a request and returns the answer, whatever it is.
func (c restClient) do(method, path, body string, header ...string) (int, string) {
	c.t.Helper()
	resp := c.open(method, path, body, header...)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(text)
}

// open sends a request and leaves the body to the caller.
func (c restClient) open(method, path, body string, header ...string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.client.Do(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}
