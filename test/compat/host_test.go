// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compat tests the vendors' APIs that the server offers, from outside: a standalone server, real tokens, and
// the vendors' own clients. Only the vendor is a stand-in.
package compat

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/integration"
)

// vendorKey is the key that only the server knows.
const vendorKey = "sk-key-of-the-vendor-0123456789"

// seen is a request as the vendor received it.
type seen struct {
	path, query, body string
	header            http.Header
}

// vendor is a model's server whose answers a test decides.
type vendor struct {
	*httptest.Server

	mu     sync.Mutex
	all    []seen
	answer http.HandlerFunc
}

func newVendor(t testing.TB, answer http.HandlerFunc) *vendor {
	t.Helper()
	v := &vendor{answer: answer}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.all = append(v.all, seen{r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone()})
		v.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		v.answer(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

// last returns the last request, and how many there were.
func (v *vendor) last() (seen, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.all) == 0 {
		return seen{}, 0
	}
	return v.all[len(v.all)-1], len(v.all)
}

// says returns a handler that answers with a body.
func says(code int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Openai-Organization", "org-of-the-operator")
		w.Header().Set("Set-Cookie", "vendor=1")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	jsonKind, eventKind = "application/json", "text/event-stream; charset=utf-8"

	chatAnswer = `{"id":"chatcmpl-1", "object":"chat.completion","created":1,"model":"m-2026","future":{"b":1,"a":[2.50]},` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"Hello\u0020there."},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`
	messageAnswer = `{"id":"msg_1","type":"message","role":"assistant","model":"c-2026","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},` +
		`{"type":"text","text":"Hello there."}],"stop_reason":"end_turn","stop_sequence":null,"future":[1, 2],` +
		`"usage":{"input_tokens":5,"cache_read_input_tokens":3,"cache_creation_input_tokens":2,"output_tokens":7}}`
)

// server is a standalone server with Providers.
type server struct {
	*integration.Server

	t     testing.TB
	admin *versioned.Clientset
}

func start(t testing.TB, configure ...func(*standalone.Options)) *server {
	t.Helper()
	s := &server{Server: integration.Start(t, configure...), t: t}
	var err error
	if s.admin, err = versioned.NewForConfig(s.Admin); err != nil {
		t.Fatal(err)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"chats"}, Verbs: []string{"create"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"providers"}, Verbs: []string{"list"}},
	}
	readAgents := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"agents"}, Verbs: []string{"get"}}
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"chat": rules, "chats-only": rules[:1], "providers-only": rules[1:], "chat-agents": {rules[0], rules[1], readAgents},
		"chat-tasks": {rules[0], rules[1], {APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"tasks"}, Verbs: []string{"create", "get", "list"}}},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		if _, err := s.Kubernetes(t).RbacV1().ClusterRoles().Create(context.Background(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// namespace makes a namespace with the Secret of the vendor's key.
func (s *server) namespace(name string) {
	s.t.Helper()
	k, ctx := s.Kubernetes(s.t), context.Background()
	_, err := k.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": vendorKey}}
	if _, err := k.CoreV1().Secrets(name).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// provider makes a Provider whose server is at an address.
func (s *server) provider(namespace, name string, kind v1alpha1.ProviderType, address, model string) {
	s.t.Helper()
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{
		Type: kind, BaseURL: address, DefaultModel: model, SecretRef: v1alpha1.ProviderSecretReference{Name: "key"},
	}}
	if _, err := s.admin.CoreV1alpha1().Providers(namespace).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// token makes a ServiceAccount with a role in its namespace, and a token.
func (s *server) token(namespace, account, role string) string {
	s.t.Helper()
	k, ctx := s.Kubernetes(s.t), context.Background()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}
	if _, err := k.CoreV1().ServiceAccounts(namespace).Create(ctx, sa, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	if role != "" {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}},
		}
		if _, err := k.RbacV1().RoleBindings(namespace).Create(ctx, b, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	req, err := k.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return req.Status.Token
}

// got is an answer.
type got struct {
	code   int
	body   string
	header http.Header
}

// post sends a body to a path of the plain listener. Header is pairs of name and value. The server's tools are switched off
// unless the header says otherwise.
func (s *server) post(path, body string, header ...string) got {
	s.t.Helper()
	return s.send(http.MethodPost, path, body, header...)
}

func (s *server) send(method, path, body string, header ...string) got {
	s.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, s.RESTURL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Platform-Tools", "disabled")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
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
	return got{resp.StatusCode, string(data), resp.Header}
}
