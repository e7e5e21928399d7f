// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestVendorsAPIs: on the server's own listener, clients of the vendors' APIs use the Providers of a namespace with a
// ServiceAccount token of the cluster. The keys are in Secrets of the cluster, and reach the vendor alone.
func TestVendorsAPIs(t *testing.T) {
	const key = "sk-of-the-vendor-0123456789"
	answers := map[string]string{
		"/v1/chat/completions": `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}`,
		"/v1/messages":         `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":7}}`,
	}
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if credential := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + r.Header.Get("X-Api-Key"); credential != key || answers[r.URL.Path] == "" {
			t.Errorf("the vendor got %s with the credential %q", r.URL.Path, credential)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[r.URL.Path])
	}))
	t.Cleanup(vendor.Close)
	s := Start(t)
	s.namespace("models")
	s.c.Kubectl(t, "--namespace", "models", "create", "secret", "generic", "keys", "--from-literal=key="+key)
	for name, base := range map[string]string{"openai": vendor.URL + "/v1", "anthropic": vendor.URL} {
		s.apply(fmt.Sprintf(`{apiVersion: core.platform.ai/v1alpha1, kind: Provider, metadata: {name: %[1]s, namespace: models}, spec: {
			type: %[1]s, baseURL: "%s", defaultModel: m, secretRef: {name: keys, key: key}}}`, name, base))
	}
	member := s.direct(s.member("models", "client", "platform-editor", "create"))
	viewer := s.direct(s.member("models", "viewer", "platform-viewer", "list"))
	const body = `{"model":"%s/m","max_tokens":16,"messages":[{"role":"user","content":"Hello?"}]}`
	for path, provider := range map[string]string{"/openai/v1/chat/completions": "openai", "/anthropic/v1/messages": "anthropic"} {
		request := fmt.Sprintf(body, provider)
		_, last, _ := strings.Cut(path, "/v1")
		got := s.send(t, member, http.MethodPost, path, request, "X-Platform-Tools", "disabled")
		if got.Want(t, http.StatusOK, "Hello."); got.Body != answers["/v1"+last] {
			t.Errorf("%s: %s", path, got.Body)
		}
		s.send(t, viewer, http.MethodPost, path, request, "X-Platform-Tools", "disabled").Want(t, http.StatusForbidden, "permission_error")
	}
}
