// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console tests the web console from outside: a standalone server, real tokens, and headless Chromium.
package console

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// server is a standalone server with the namespace team.
type server struct {
	*standalone.Server

	t testing.TB
}

func start(t testing.TB, configure ...func(*standalone.Options)) *server {
	t.Helper()
	s := &server{t: t, Server: standalone.Start(t, configure...)}
	s.Namespaces(t, "team")
	return s
}

// token makes a ServiceAccount of namespace team with a role, and returns a token of it.
func (s *server) token(account, role string) string {
	s.t.Helper()
	return s.Token(s.t, "team", account, role)
}

// bind gives a ServiceAccount of namespace team a role in a namespace.
func (s *server) bind(namespace, account, role string) {
	s.t.Helper()
	s.Bind(s.t, namespace, role, host.Account("team", account))
}

// browser is what a browser knows of a session at an address.
type browser struct {
	t      testing.TB
	base   string
	cookie *http.Cookie
	key    string
	client *http.Client // nil: one without certificates
}

// send makes a request as the console's page does. Header is pairs of name and value, which replace those of the page; an
// empty value removes one.
func (b *browser) send(method, path, body string, header ...string) host.Answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.cookie != nil {
		req.AddCookie(b.cookie)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set(console.HeaderKey, b.key)
	if method != http.MethodGet {
		req.Header.Set("Origin", b.base)
	}
	for i := 0; i < len(header); i += 2 {
		switch name, value := header[i], header[i+1]; {
		case value == "":
			req.Header.Del(name)
		case name == "Host":
			req.Host = value
		default:
			req.Header.Set(name, value)
		}
	}
	client := http.Client{Transport: http.DefaultTransport}
	if b.client != nil {
		client = *b.client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return host.Answer{Code: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// login exchanges a credential for a session.
func (b *browser) login(authorization string) host.Answer {
	b.t.Helper()
	b.key = "new"
	a := b.send(http.MethodPost, "/console/session", "", "Authorization", authorization)
	if a.Code != http.StatusCreated {
		return a
	}
	cookies, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
	if err != nil {
		b.t.Fatal(err)
	}
	var got struct{ Key string }
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil {
		b.t.Fatal(err)
	}
	b.cookie, b.key = cookies, got.Key
	return a
}

// enter begins a session with a token on the plain listener.
func (s *server) enter(token string) *browser {
	s.t.Helper()
	b := &browser{t: s.t, base: s.RESTURL}
	if a := b.login("Bearer " + token); a.Code != http.StatusCreated {
		s.t.Fatalf("login: %d %s", a.Code, a.Body)
	}
	return b
}
