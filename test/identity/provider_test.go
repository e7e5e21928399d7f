// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity tests who may do what, from outside: a standalone server, tokens of a real OpenID provider, and every
// REST path as every kind of caller.
package identity

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/integration"
)

// provider is the OpenID provider of npm/provider.mjs.
type provider struct {
	t      *testing.T
	issuer string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

// newProvider starts a provider. It is installed by make test, if npm is there; without it, the test is skipped, except
// where CI is set.
func newProvider(t *testing.T) *provider {
	t.Helper()
	if _, err := os.Stat("npm/node_modules"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the OpenID provider is not installed: make test installs it with npm")
		}
		t.Skip("the OpenID provider is not installed: make test installs it with npm")
	}
	p := &provider{t: t, cmd: exec.CommandContext(context.Background(), "node", "npm/provider.mjs")}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	p.issuer = p.line("http://")
	return p
}

// stop ends the provider; it may be called twice.
func (p *provider) stop() {
	_ = p.in.Close()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}

// line returns the next line with a prefix; the provider also prints notices.
func (p *provider) line(prefix string) string {
	p.t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.t.Fatalf("the provider ended: %v", err)
		}
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSpace(line)
		}
	}
}

// rotate replaces the provider's key.
func (p *provider) rotate() {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "rotate\n"); err != nil {
		p.t.Fatal(err)
	}
	p.line("rotate")
}

// token returns an access token of a client for a resource.
func (p *provider) token(client, resource string) string {
	p.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {"secret"}, "resource": {resource}}
	resp, err := http.PostForm(p.issuer+"/token", form)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Token == "" {
		p.t.Fatalf("token of %s: %s %v", client, resp.Status, err)
	}
	return answer.Token
}

// server is a standalone server.
type server struct {
	*integration.Server

	t *testing.T
}

func start(t *testing.T, identity external.Options) *server {
	t.Helper()
	return &server{t: t, Server: integration.Start(t, func(o *standalone.Options) { o.Identity = identity })}
}

func (s *server) namespace(names ...string) {
	s.t.Helper()
	for _, name := range names {
		_, err := s.Kubernetes(s.t).CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatal(err)
		}
	}
}

// bind gives a group a ClusterRole in a namespace, or everywhere.
func (s *server) bind(namespace, role, group string) {
	s.t.Helper()
	k, ctx := s.Kubernetes(s.t), context.Background()
	meta := metav1.ObjectMeta{GenerateName: "test-"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}}
	var err error
	if namespace == "" {
		_, err = k.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = k.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// send makes a request of the plain listener. Header is pairs of name and value.
func (s *server) send(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.RESTURL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
