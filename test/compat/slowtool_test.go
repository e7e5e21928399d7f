// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestToolTimeout: a tool whose server never answers is ended at --chat-tool-timeout. The model reads why and answers.
func TestToolTimeout(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	s, _ := onTools(t, fmt.Sprintf(`
turns:
- match: {contains: read it, lastRole: user, offered: [web_fetch]}
  reply: {toolCalls: [{name: web_fetch, arguments: {url: %q}}]}
- match: {lastRole: tool}
  reply: {text: "[goal: reached]\nNo answer: {{ .Results.web_fetch.errorType }}: {{ .Results.web_fetch.error }}"}
`, silent.URL), func(o *standalone.Options) {
		o.WebFetchAllow = []string{strings.TrimPrefix(silent.URL, "http://")}
		o.Chat.ToolTimeout = 100 * time.Millisecond
	})
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		for _, stream := range []bool{false, true} {
			got := s.post(a.path, a.body(stream, "read it"), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if text := said(t, got.Body); got.Code != http.StatusOK || !strings.Contains(text, "No answer: timeout: ") ||
				!strings.Contains(text, "100ms") || !strings.Contains(text, "--chat-tool-timeout") {
				t.Fatalf("%s, stream %v: %d %s", name, stream, got.Code, text)
			}
		}
	}
}
