// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// A model that refuses a hint is asked again without it, and not again with it. The form of the answer is no hint: it stays, and a
// server that does not know it refuses the request.
func TestHints(t *testing.T) {
	t.Parallel()
	half := 0.5
	whole := llm.Request{
		Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}, TopP: &half, Effort: "low",
		Tools: []tool.Definition{{Name: "f", Strict: true}},
	}
	const effort, topP, strict = `"effort":"low"`, `"top_p":0.5`, `"strict":true`
	form := json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`)
	for _, tc := range []struct {
		hint, refusal string
		format        json.RawMessage
		asked         int
	}{
		{effort, "This model does not support the effort parameter.", form, 3},
		{topP, "top_p: cannot be used with this model", form, 3},
		{strict, "tools.0.custom.strict: Extra inputs are not permitted", form, 3},
		{effort, "output_config: Extra inputs are not permitted", nil, 3},
		{effort, "output_config: Extra inputs are not permitted", form, 2},
	} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if asked = append(asked, string(body)); strings.Contains(string(body), tc.hint) || tc.asked == 2 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, tc.refusal)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: message_delta\n"+
				"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		}))
		c := newClient(t, Config{BaseURL: server.URL})
		whole.Format = tc.format
		for range 2 {
			if _, err := c.Generate(t.Context(), whole, nil); (err != nil) != (tc.asked == 2) {
				t.Errorf("%s: %v", tc.refusal, err)
			}
		}
		server.Close()
		if len(asked) != tc.asked {
			t.Fatalf("%s: asked %d times: %s", tc.refusal, len(asked), asked)
		}
		for n, body := range asked {
			if has := strings.Contains(body, tc.hint); has != (n == 0 || tc.asked == 2) {
				t.Errorf("%s: request %d has it: %v: %s", tc.refusal, n, has, body)
			}
		}
	}
}
