// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// Callers with a transaction token see five members of a Provider, by REST, in every mode and however they send the token. All
// others see the object.
func TestReducedProviders(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	o := i.options(external.ModeOff)
	o.ContextToken.Headers = []string{"Txn-Token", "Authorization:Bearer"}
	s := start(t, o)
	s.namespace("team")
	s.bind("team", "platform-viewer", external.GroupContextToken)
	s.bind("team", "platform-viewer", external.GroupOIDC)
	for _, name := range []string{"a", "b"} {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": name}}, Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderOpenAI, BaseURL: "https://models.internal.example.com", DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key-of-models"},
		}}
		must(s.admin().CoreV1alpha1().Providers("team").Create(t.Context(), p, metav1.CreateOptions{}))(t)
	}
	s.await(func() bool {
		code, _ := s.send(http.MethodGet, "/api/v1/providers", "", "Authorization", "Bearer "+i.token("user-1"))
		return code == http.StatusOK
	})
	row := func(name string) object {
		return object{"name": name, "namespace": "team", "type": "openai", "defaultModel": "m", "ready": false}
	}
	token := i.transaction("user-1")
	for how, header := range map[string][]string{
		"header": {"Txn-Token", token}, "bearer": {"Authorization", "Bearer " + token}, "key": {"X-Api-Key", token},
		"beside another": {"Txn-Token", token, "Authorization", "Bearer " + i.token("user-1")},
	} {
		for path, want := range map[string]object{
			"/api/v1/providers":                      {"items": []any{row("a"), row("b")}, "metadata": object{}},
			"/api/v1/providers?labelSelector=of%3Db": {"items": []any{row("b")}, "metadata": object{}},
			"/api/v1/providers/a":                    row("a"),
		} {
			code, answer := s.send(http.MethodGet, path, "", header...)
			var got object
			if err := json.Unmarshal([]byte(answer), &got); err != nil || code != http.StatusOK {
				t.Fatalf("%s %s: %d %s", how, path, code, answer)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", how, path, d)
			}
		}
		if code, answer := s.send(http.MethodGet, "/api/v1/providers/none", "", header...); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", how, code, answer)
		}
	}
	var page struct {
		Items    []object
		Metadata struct {
			Continue           string
			RemainingItemCount int
		}
	}
	_, answer := s.send(http.MethodGet, "/api/v1/providers?limit=1", "", "Txn-Token", token)
	if err := json.Unmarshal([]byte(answer), &page); err != nil || len(page.Items) != 1 || page.Metadata.Continue == "" || page.Metadata.RemainingItemCount != 1 {
		t.Errorf("a page: %s", answer)
	}
	var whole v1alpha1.Provider
	code, answer := s.send(http.MethodGet, "/api/v1/providers/a", "", "Authorization", "Bearer "+i.token("user-1"))
	if err := json.Unmarshal([]byte(answer), &whole); err != nil || code != http.StatusOK || whole.Spec.BaseURL == "" || whole.Spec.SecretRef.Name == "" {
		t.Errorf("with a token of the OpenID provider: %d %s", code, answer)
	}
}
