// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// A model that refuses a hint by its name is asked again without it, and not again with it; another model is.
func TestHints(t *testing.T) {
	t.Parallel()
	half := 0.5
	whole := llm.Request{
		Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}, TopP: &half, Effort: "low", Choice: llm.ToolChoice{Single: true},
		Tools: []tool.Definition{{Name: "f", Strict: true}},
	}
	all := []string{`"reasoning_effort":"low"`, `"top_p":0.5`, `"parallel_tool_calls":false`, `"strict":true`}
	for i, name := range []string{hintEffort, hintTopP, hintParallel, hintStrict} {
		for _, status := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity} {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if asked = append(asked, string(body)); strings.Contains(string(body), all[i]) && !strings.Contains(string(body), `"model":"other"`) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(status)
					_, _ = fmt.Fprintf(w, `{"error":{"message":"Unsupported parameter: '%s'","type":"invalid_request_error"}}`, name)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
			}))
			c := newClient(t, Config{BaseURL: server.URL})
			other := whole
			other.Model = "other"
			for _, req := range []llm.Request{whole, whole, other} {
				if _, err := c.Generate(t.Context(), req, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			server.Close()
			if len(asked) != 4 {
				t.Fatalf("%s: asked %d times", name, len(asked))
			}
			for j, member := range all {
				for n, body := range asked {
					if want := j != i || n == 0 || n == 3; strings.Contains(body, member) != want {
						t.Errorf("%s: request %d has %s: %v: %s", name, n, member, !want, body)
					}
				}
			}
		}
	}
}
