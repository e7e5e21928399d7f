// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// answerCompat is the vendor.
func answerCompat(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if bytes.Contains(body, []byte(`"stream":false`)) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if bytes.Contains(body, []byte(`"tools":`)) { // the server's; the mark says that the goal is reached
		_, _ = io.WriteString(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"[goal: reached]\nHello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
		return
	}
	for range streamEvents {
		_, _ = io.WriteString(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hello. "}}],"usage":null}`+"\n\n")
		_ = http.NewResponseController(w).Flush() // the client reads to the end
	}
	_, _ = io.WriteString(w, `data: {"id":"1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
}

// answerTask is a vendor that says one word.
func answerTask(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, `data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
}

// makeProvider makes a Provider of a vendor, and a Secret of the same name with its key.
func makeProvider(ctx context.Context, c *http.Client, base, name, vendor string) error {
	secret := corev1.Secret{StringData: map[string]string{"api-key": "key"}}
	secret.APIVersion, secret.Kind, secret.Name = "v1", "Secret", name
	p := v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOpenAI, BaseURL: vendor, SecretRef: v1alpha1.ProviderSecretReference{Name: name}}}
	p.APIVersion, p.Kind, p.Name = v1alpha1.SchemeGroupVersion.String(), "Provider", name
	for path, o := range map[string]any{"/api/v1/namespaces/default/secrets": secret, "/apis/" + p.APIVersion + "/namespaces/default/providers": p} {
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if err := send(ctx, c, http.MethodPost, base+path, body, nil); err != nil {
			return err
		}
	}
	return nil
}
