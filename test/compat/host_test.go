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
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/realvendor"
)

// vendorKey is the key that only the server knows.
const vendorKey = realvendor.Key

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
	*standalone.Server

	t     testing.TB
	admin core.CoreV1alpha1Interface
}

func start(t testing.TB, configure ...func(*standalone.Options)) *server {
	t.Helper()
	s := &server{Server: standalone.Start(t, configure...), t: t}
	s.admin = s.Core(t)
	chat, list := rule("create", "chats"), rule("list", "providers")
	s.Role(t, "chat", chat, list)
	s.Role(t, "chats-only", chat)
	s.Role(t, "providers-only", list)
	s.Role(t, "chat-agents", chat, list, rule("get", "agents"))
	tasks := rule("create", "tasks")
	tasks.Verbs = append(tasks.Verbs, "get", "list")
	s.Role(t, "chat-tasks", chat, list, tasks)
	return s
}

// rule allows a verb on a resource of the platform.
func rule(verb, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{resource}, Verbs: []string{verb}}
}

// namespace makes a namespace with the Secret of the vendor's key.
func (s *server) namespace(name string) {
	s.t.Helper()
	s.Namespaces(s.t, name)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": vendorKey}}
	if _, err := s.Kubernetes(s.t).CoreV1().Secrets(name).Create(context.Background(), secret, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// provider makes a Provider whose server is at an address.
func (s *server) provider(namespace, name string, kind v1alpha1.ProviderType, address, model string) {
	s.t.Helper()
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{
		Type: kind, BaseURL: address, DefaultModel: model, SecretRef: v1alpha1.ProviderSecretReference{Name: "key"},
	}}
	if _, err := s.admin.Providers(namespace).Create(context.Background(), p, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// post sends a body to a path of the plain listener. Header is pairs of name and value. The server's tools are switched off
// unless the header says otherwise.
func (s *server) post(path, body string, header ...string) host.Answer {
	s.t.Helper()
	if !slices.Contains(header, "X-Platform-Tools") {
		header = append([]string{"X-Platform-Tools", "disabled"}, header...)
	}
	return s.Send(s.t, http.MethodPost, path, body, header...)
}
