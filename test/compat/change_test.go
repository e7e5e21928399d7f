// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The request after a change to a Provider, an Agent, a Secret or a Budget was acknowledged is answered by what was written.
func TestChangesAreSeen(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	first, second := newVendor(t, says(http.StatusOK, jsonKind, chatAnswer)), newVendor(t, says(http.StatusOK, jsonKind, chatAnswer))
	s.provider("team", "default", v1alpha1.ProviderOpenAI, first.URL, "m")
	token := s.Token(t, "team", "client", "chat-agents")
	ctx, providers, agents := t.Context(), s.admin.Providers("team"), s.admin.Agents("team")
	secrets := s.Kubernetes(t).CoreV1().Secrets("team")
	ask := func(want int, v *vendor, key, model string) {
		t.Helper()
		got := s.post("/openai/v1/chat/completions?agent=a", `{"messages":[{"role":"user","content":"h"}]}`, "Authorization", "Bearer "+token)
		if got.Code != want {
			t.Fatalf("%d %s, want %d", got.Code, got.Body, want)
		}
		if v == nil {
			return
		}
		if last, _ := v.last(); last.header.Get("Authorization") != "Bearer "+key || !strings.Contains(last.body, `"`+model+`"`) {
			t.Fatalf("the vendor got %v %s, want key %s and model %s", last.header, last.body, key, model)
		}
	}
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.AgentSpec{
		ProviderRef: &v1alpha1.NamespacedReference{Name: "default"}, Model: &v1alpha1.AgentModel{Name: "m0"},
	}}
	if _, err := agents.Create(ctx, agent, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ask(http.StatusOK, first, vendorKey, "m0")
	for _, step := range []string{"1", "2", "3"} {
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "rotated-" + step}}
		if _, err := secrets.Update(ctx, key, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		ask(http.StatusOK, first, "rotated-"+step, "m"+string(step[0]-1))
		patch := `{"spec":{"model":{"name":"m` + step + `"}}}`
		if _, err := agents.Patch(ctx, "a", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		ask(http.StatusOK, first, "rotated-"+step, "m"+step)
	}
	if _, err := providers.Patch(ctx, "default", "application/merge-patch+json", []byte(`{"spec":{"baseURL":"`+second.URL+`"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ask(http.StatusOK, second, "rotated-3", "m3")
	s.limit("team", "tiny", v1alpha1.BudgetSpec{Limit: v1alpha1.BudgetLimit{Tokens: new(int64(1))}, Window: v1alpha1.BudgetMonth})
	ask(http.StatusForbidden, nil, "", "")
	if err := s.admin.Budgets("team").Delete(ctx, "tiny", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ask(http.StatusOK, second, "rotated-3", "m3")
	if err := providers.Delete(ctx, "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ask(http.StatusBadRequest, nil, "", "")
}
