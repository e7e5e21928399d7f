// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/models"
)

// The Secret of another server is read once in a while, and again when its key was refused.
func TestRenew(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	value := atomic.Pointer[string]{}
	set := func(s string) { value.Store(&s) }
	set("old-key")
	answer := func(o any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(o)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/namespaces/a/secrets/s", func(w http.ResponseWriter, r *http.Request) {
		reads.Add(1)
		answer(&corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "a"},
			Data: map[string][]byte{"api-key": []byte(*value.Load())},
		})(w, r)
	})
	mux.HandleFunc("/apis/core.platform.ai/v1alpha1/namespaces/a/providers", answer(&v1alpha1.ProviderList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ProviderList"},
		Items: []v1alpha1.Provider{{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "a"}, Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderOpenAI, DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "s"},
		}}},
	}))
	server := httptest.NewServer(mux)
	defer server.Close()
	m, err := models.New(models.Options{Loopback: &rest.Config{Host: server.URL}, Host: &rest.Config{Host: server.URL}, Authorizer: roles()})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func() models.Candidate {
		t.Helper()
		c, err := m.Resolve(t.Context(), models.Query{Namespace: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Candidates[0]
	}
	holds := func(c models.Candidate, key string) bool {
		return string(c.Scrub([]byte("the "+key))) == "the [REDACTED]"
	}
	resolve()
	c := resolve()
	if n := reads.Load(); n != 1 || !holds(c, "old-key") {
		t.Fatalf("%d reads", n)
	}
	if c.Renew(t.Context()) {
		t.Error("the same key was taken for a new one")
	}
	set("new-key")
	if !c.Renew(t.Context()) || !holds(c, "new-key") || !holds(resolve(), "new-key") {
		t.Error("the new key was not read")
	}
	if n := reads.Load(); n != 3 {
		t.Errorf("%d reads", n)
	}
}
