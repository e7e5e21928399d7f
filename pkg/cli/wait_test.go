// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWaitIncludesTheStatus: "task wait X && task get X" shows how the task ended, although its status follows the event.
func TestWaitIncludesTheStatus(t *testing.T) {
	const task = `{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"a","uid":"u","resourceVersion":"7"},"status":{"phase":"%"}}`
	running, succeeded := strings.Replace(task, "%", "Running", 1), strings.Replace(task, "%", "Succeeded", 1)
	watches := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, kind := running, "application/json"
		switch {
		case strings.HasSuffix(r.URL.Path, "/tasks/a/stream"):
			kind = "text/event-stream"
			body = "id: 3\nevent: execution_event\ndata: {\"seq\":3,\"type\":\"TaskSucceeded\",\"streamUID\":\"u\"}\n\nevent: stream_complete\ndata: {\"type\":\"TaskSucceeded\"}\n\n"
		case r.URL.Query().Get("watch") != "":
			if watches++; watches == 1 { // the first one is cut
				body = `{"type":"MODIFIED","object":` + running + "}\n"
			} else {
				body = `{"type":"MODIFIED","object":` + succeeded + "}\n"
			}
		}
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	var b strings.Builder
	code := Main(t.Context(), "platform", []string{"--kubeconfig", "/dev/null", "-s", s.URL, "task", "wait", "a"}, Streams{In: strings.NewReader(""), Out: &b, Err: &b})
	if code != 0 || !strings.Contains(b.String(), "task a succeeded") || watches != 2 {
		t.Errorf("exit code %d after %d watches: %s", code, watches, b.String())
	}
}
