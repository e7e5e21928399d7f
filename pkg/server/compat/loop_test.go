// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/models"
)

// loop is a Handler behind a chain that lets everybody in. The Provider "default" is the only one, and a vendor on loopback
// serves it.
type loop struct {
	http.Handler

	path   string
	answer http.HandlerFunc // of the vendor
	mu     sync.Mutex       // guards asked: an answer may be cut before the vendor's handler ends
	asked  [][]byte         // the bodies of the requests that the vendor got
	ended  ends
	close  func() // ends the vendor
}

// newLoop returns a loop whose clients use an operation and whose Provider has a type.
func newLoop(t testing.TB, op operation, kind v1alpha1.ProviderType) *loop {
	t.Helper()
	l := &loop{ended: make(ends, 16), path: openAIPrefix + string(op), answer: func(w http.ResponseWriter, _ *http.Request) { answerShortly(w, kind) }}
	if protocolOf(op) == llm.ProtocolAnthropic {
		l.path = anthropicPrefix + string(op)
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.asked = append(l.asked, body)
		l.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.answer(w, r)
	}))
	t.Cleanup(vendor.Close)
	l.close = vendor.Close
	objects := http.NewServeMux()
	serve := func(path string, o any) {
		objects.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(o)
		})
	}
	serve("/api/v1/namespaces/default/secrets/s", &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"},
		Data: map[string][]byte{"api-key": []byte("sk-of-the-vendor")},
	})
	serve("/apis/core.platform.ai/v1alpha1/namespaces/default/providers", &v1alpha1.ProviderList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ProviderList"},
		Items: []v1alpha1.Provider{{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}, Spec: v1alpha1.ProviderSpec{
			Type: kind, BaseURL: vendor.URL, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "s"},
		}}},
	})
	server := httptest.NewServer(objects)
	t.Cleanup(server.Close)
	m, err := models.New(models.Options{
		Loopback: &rest.Config{Host: server.URL}, Changed: func(string) (uint64, bool) { return 1, true },
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Models: m, Meter: l.ended})
	if err != nil {
		t.Fatal(err)
	}
	chain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Inner(nil).ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "u"})))
	})
	l.Handler = h.Wrap(chain, nil)
	return l
}

// answerShortly is a whole answer of a vendor, as a stream.
func answerShortly(w http.ResponseWriter, kind v1alpha1.ProviderType) {
	w.Header().Set("Content-Type", "text/event-stream")
	stream := `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	if kind == v1alpha1.ProviderAnthropic {
		stream = `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hi"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`
	}
	_, _ = io.WriteString(w, stream)
}

// post sends a body, and returns the answer and what the vendor got.
func (l *loop) post(t testing.TB, body string) (answer *httptest.ResponseRecorder, got [][]byte) {
	t.Helper()
	l.mu.Lock()
	l.asked = nil
	l.mu.Unlock()
	for len(l.ended) > 0 {
		<-l.ended
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, l.path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", "of-the-client")
	answer = httptest.NewRecorder()
	l.ServeHTTP(answer, r)
	l.mu.Lock()
	defer l.mu.Unlock()
	return answer, l.asked
}
