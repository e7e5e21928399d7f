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
	"os/exec"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// provider is the OpenID provider of npm/provider.mjs.
type provider struct {
	t      *testing.T
	issuer string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

// newProvider starts a provider.
func newProvider(t *testing.T) *provider {
	t.Helper()
	kit.Needs(t, kit.NPM)
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
	*standalone.Server

	t *testing.T
}

func start(t *testing.T, identity external.Options) *server {
	t.Helper()
	return &server{t: t, Server: standalone.Start(t, func(o *standalone.Options) {
		o.Identity = identity
		o.Connectors.Enabled, o.Connectors.CallbackBase = true, "https://platform.test"
	})}
}

// bind gives a group a ClusterRole in a namespace, or everywhere.
func (s *server) bind(namespace, role, group string) {
	s.t.Helper()
	s.Bind(s.t, namespace, role, host.Group(group))
}

// send makes a request of the plain listener. Header is pairs of name and value.
func (s *server) send(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	a := s.Send(s.t, method, path, body, header...)
	return a.Code, a.Body
}
