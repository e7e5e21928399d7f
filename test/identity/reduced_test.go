// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/kit/host"
)

// withProviders starts a server with the Providers a and b, which callers of both kinds may read.
func withProviders(t *testing.T, mode, role string) (*issuer, *server) {
	t.Helper()
	i := newIssuer(t)
	o := i.options(mode)
	o.ContextToken.Headers = []string{"Txn-Token", "Authorization:Bearer"}
	s := start(t, o)
	s.Namespaces(t, "team")
	s.bind("team", role, external.GroupContextToken)
	s.bind("team", role, external.GroupOIDC)
	for _, name := range []string{"a", "b"} {
		p := &v1alpha1.Provider{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"of": name},
				Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"baseURL":"https://models.internal.example.com"}}`},
			},
			Spec: v1alpha1.ProviderSpec{
				Type: v1alpha1.ProviderOpenAI, BaseURL: "https://models.internal.example.com", DefaultModel: "m", SecretRef: v1alpha1.ProviderSecretReference{Name: "key-of-models"},
			},
		}
		must(s.Core(t).Providers("team").Create(t.Context(), p, metav1.CreateOptions{}))(t)
	}
	s.await(func() bool {
		code, _ := s.send(http.MethodGet, "/api/v1/providers", "", "Authorization", "Bearer "+i.token("user-1"))
		return code == http.StatusOK
	})
	return i, s
}

// Callers with a transaction token see five members of a Provider, by REST, in every mode and however they send the token. All
// others see the object.
func TestReducedProviders(t *testing.T) {
	t.Parallel()
	i, s := withProviders(t, external.ModeOff, "platform-viewer")
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

// native sends a request to the native API. The answer of a watch is its first two lines.
func (s *server) native(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	client := must(rest.HTTPClientFor(s.Anonymous()))(s.t)
	resp := host.Open(s.t, client, method, s.Admin.Host+path, body, header...)
	defer resp.Body.Close()
	if !strings.Contains(path, "watch=true") || resp.StatusCode != http.StatusOK {
		return resp.StatusCode, string(must(io.ReadAll(resp.Body))(s.t))
	}
	var lines bytes.Buffer
	for d := json.NewDecoder(resp.Body); len(bytes.Split(lines.Bytes(), []byte("\n"))) < 3; {
		var e json.RawMessage
		if err := d.Decode(&e); err != nil {
			s.t.Fatal(err)
		}
		lines.Write(append(e, '\n'))
	}
	return resp.StatusCode, lines.String()
}

// The native API shows callers with a transaction token no more of a Provider than REST does, in every mode and form: also
// tables, watches and metadata. They do not learn the rest by selecting, nor by writing, although their role allows both.
func TestReducedProvidersNatively(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{external.ModeOff, external.ModeEnforce} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			i, s := withProviders(t, mode, "cluster-admin")
			token := i.transaction("user-1", object{"scope": "platform:providers:use"})
			const all, a = "/apis/core.platform.ai/v1alpha1/namespaces/team/providers", "/apis/core.platform.ai/v1alpha1/namespaces/team/providers/a"
			hidden := []string{"internal.example.com", "key-of-models", "annotations", "managedFields", "labels", "observedGeneration"}
			const table, partial = "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
			for _, r := range []struct{ path, accept string }{
				{all, ""},
				{a, ""},
				{a + "/status", ""},
				{all + "?watch=true", ""},
				{all + "?limit=1", ""},
				{all + "?labelSelector=of%3Da", ""},
				{all + "?fieldSelector=metadata.name%3Da", ""},
				{all, table},
				{a, table},
				{all + "?includeObject=Object", table},
				{a, partial},
				{all + "?watch=true", table},
				{all + "?watch=true", partial + "," + table},
				{all, "application/yaml"},
			} {
				code, answer := s.native(http.MethodGet, r.path, "", "Txn-Token", token, "Accept", r.accept)
				if code != http.StatusOK {
					t.Fatalf("%s %s: %d %s", r.path, r.accept, code, answer)
				}
				for _, text := range hidden {
					if strings.Contains(answer, text) {
						t.Errorf("%s %s shows %s: %s", r.path, r.accept, text, answer)
					}
				}
				code, answer = s.native(http.MethodGet, r.path, "", "Authorization", "Bearer "+i.token("user-1"), "Accept", r.accept)
				if code != http.StatusOK || r.accept == "" && !strings.Contains(answer, "key-of-models") {
					t.Errorf("%s %s with a token of the OpenID provider: %d %s", r.path, r.accept, code, answer)
				}
			}
			var got object
			if _, answer := s.native(http.MethodGet, a, "", "Txn-Token", token); json.Unmarshal([]byte(answer), &got) != nil {
				t.Fatal(answer)
			}
			metadata, _ := got["metadata"].(object)
			if d := cmp.Diff([]string{"creationTimestamp", "name", "namespace", "resourceVersion", "uid"}, slices.Sorted(maps.Keys(metadata))); d != "" {
				t.Errorf("metadata (-want +got):\n%s", d)
			}
			delete(got, "metadata")
			want := object{
				"apiVersion": "core.platform.ai/v1alpha1", "kind": "Provider",
				"spec": object{"type": "openai", "defaultModel": "m", "secretRef": object{"name": ""}}, "status": object{},
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// Whether an object is in the answer would tell which Secret it has.
			for _, query := range []string{"?fieldSelector=", "?watch=true&fieldSelector="} {
				path := all + query + url.QueryEscape("spec.secretRef.name=key-of-models")
				if code, answer := s.native(http.MethodGet, path, "", "Txn-Token", token); code != http.StatusBadRequest || !strings.Contains(answer, "spec.secretRef.name cannot be selected by") {
					t.Errorf("%s: %d %s", path, code, answer)
				}
				if code, answer := s.native(http.MethodGet, path, "", "Authorization", "Bearer "+i.token("user-1")); code != http.StatusOK || !strings.Contains(answer, "key-of-models") {
					t.Errorf("%s with a token of the OpenID provider: %d %s", path, code, answer)
				}
			}
			const body = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Provider","metadata":{"name":"a"},"spec":{"type":"openai","secretRef":{"name":"x"}}}`
			for _, r := range []struct{ method, path, kind string }{
				{http.MethodPatch, a + "?fieldManager=m", "application/apply-patch+yaml"},
				{http.MethodPatch, a + "?dryRun=All", "application/merge-patch+json"},
				{http.MethodPut, a, "application/json"},
				{http.MethodPost, all, "application/json"},
				{http.MethodPatch, a + "/status", "application/merge-patch+json"},
				{http.MethodDelete, a, "application/json"},
				{http.MethodDelete, all, "application/json"},
			} {
				code, answer := s.native(r.method, r.path, body, "Txn-Token", token, "Content-Type", r.kind)
				if code != http.StatusForbidden || strings.Contains(answer, "key-of-models") {
					t.Errorf("%s %s %s: %d %s", r.method, r.path, r.kind, code, answer)
				}
			}
		})
	}
}
