// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console tests the web console from outside: a standalone server, real tokens, and headless Chromium.
package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/console"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/integration"
)

// server is a standalone server with the namespace team.
type server struct {
	*integration.Server

	t testing.TB
}

func start(t testing.TB, configure ...func(*standalone.Options)) *server {
	t.Helper()
	s := &server{t: t, Server: integration.Start(t, configure...)}
	_, err := s.Kubernetes(t).CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// token makes a ServiceAccount of namespace team with a role, and returns a token of it.
func (s *server) token(account, role string) string {
	s.t.Helper()
	k, ctx := s.Kubernetes(s.t), context.Background()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := k.CoreV1().ServiceAccounts("team").Create(ctx, sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	if role != "" {
		s.bind("team", account, role)
	}
	req, err := k.CoreV1().ServiceAccounts("team").CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return req.Status.Token
}

// bind gives a ServiceAccount of namespace team a role in a namespace.
func (s *server) bind(namespace, account, role string) {
	s.t.Helper()
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: "team"}},
	}
	if _, err := s.Kubernetes(s.t).RbacV1().RoleBindings(namespace).Create(context.Background(), b, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// browser is what a browser knows of a session at an address.
type browser struct {
	t      testing.TB
	base   string
	cookie *http.Cookie
	key    string
	client *http.Client // nil: one without certificates
}

// answer is an answer whose body was read.
type answer struct {
	code   int
	header http.Header
	text   string
}

// send makes a request as the console's page does. Header is pairs of name and value, which replace those of the page; an
// empty value removes one.
func (b *browser) send(method, path, body string, header ...string) answer {
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
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// login exchanges a credential for a session.
func (b *browser) login(authorization string) answer {
	b.t.Helper()
	b.key = "new"
	a := b.send(http.MethodPost, "/console/session", "", "Authorization", authorization)
	if a.code != http.StatusCreated {
		return a
	}
	cookies, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil {
		b.t.Fatal(err)
	}
	var got struct{ Key string }
	if err := json.Unmarshal([]byte(a.text), &got); err != nil {
		b.t.Fatal(err)
	}
	b.cookie, b.key = cookies, got.Key
	return a
}

// enter begins a session with a token on the plain listener.
func (s *server) enter(token string) *browser {
	s.t.Helper()
	b := &browser{t: s.t, base: s.RESTURL}
	if a := b.login("Bearer " + token); a.code != http.StatusCreated {
		s.t.Fatalf("login: %d %s", a.code, a.text)
	}
	return b
}
