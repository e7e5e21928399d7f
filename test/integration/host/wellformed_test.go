// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestNotWellFormed: a query that cannot be parsed, a body that is no text and a condition that nobody can compare are refused by every
// API in its own form, and nothing is done. What (*url.URL).Query cannot read it leaves out, so the first of these acted in namespace
// default, and the second on all objects.
func TestNotWellFormed(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	const group = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	s.Ask(t, s.Admin, "POST", group+"agents", `{"metadata":{"name":"v"},"spec":{}}`, "Content-Type", "application/json").Want(t, http.StatusCreated)
	envelope, status, openAI, anthropic := `{"error":{"code":CODE,"message":`, `"kind":"Status"`, `"error":{"message":`, `{"type":"error","error":{`
	task := `{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"t","annotations":{"a":"` + "caf\xe9" + `"}},"spec":{"type":"container","command":["true"]}}`
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		code                     int
		form                     string
	}{
		{"REST delete", "DELETE", "/api/v1/agents/v?namespace=other;x=1", "", nil, 400, envelope},
		{"REST list", "GET", "/api/v1/agents?labelSelector=a=b;c", "", nil, 400, envelope},
		{"REST create", "POST", "/api/v1/tasks?namespace=oth%er", `{"name":"t","type":"container","command":["true"]}`, nil, 400, envelope},
		{"REST events", "GET", "/internal/v1/events/default/task/a?after=%zz", "", nil, 400, envelope},
		{"list", "GET", group + "agents?labelSelector=a=b;c", "", nil, 400, status},
		{"delete of many", "DELETE", group + "agents?labelSelector=a=b;c", "", nil, 400, status},
		{"watch", "GET", group + "agents?watch=true&x=%zz", "", nil, 400, status},
		{"dry run", "POST", group + "tasks?dryRun=All;x", `{"metadata":{"name":"t"},"spec":{"type":"container","command":["true"]}}`, nil, 400, status},
		{"chat turn", "POST", group + "chats?dryRun=All;x", `{}`, nil, 400, status},
		{"stream", "GET", group + "tasks/a/stream?after=1;2", "", nil, 400, status},
		{"Kubernetes' kind", "GET", "/api/v1/namespaces/default/configmaps?labelSelector=a=b;c", "", nil, 400, status},
		{"no resource", "GET", "/metrics?a;b", "", nil, 400, status},
		{"OpenAI", "POST", "/openai/v1/chat/completions?namespace=other;x", `{}`, nil, 400, openAI},
		{"Anthropic", "POST", "/anthropic/v1/messages?namespace=oth%er", `{}`, nil, 400, anthropic},
		{"console", "GET", "/console/?a;b", "", nil, 400, ""},

		{"REST text", "POST", "/api/v1/tasks", "{\"name\":\"t\",\"type\":\"ai\",\"prompt\":\"caf\xe9\"}", []string{"Content-Type", "application/json; charset=iso-8859-1"}, 400, envelope},
		{"REST text, cut", "POST", "/api/v1/tasks", "{\"name\":\"t\",\"type\":\"ai\",\"prompt\":\"\"}\xe2\x82", nil, 400, envelope},
		{"text", "POST", group + "tasks", task, []string{"Content-Type", "application/json"}, 400, status},
		{"YAML", "POST", group + "tasks", task, []string{"Content-Type", "application/yaml"}, 400, status},
		{"apply", "PATCH", group + "tasks/t?fieldManager=x", task, []string{"Content-Type", "application/apply-patch+yaml"}, 400, status},
		{"patch", "PATCH", group + "agents/v", "{\"metadata\":{\"annotations\":{\"a\":\"caf\xe9\"}}}", []string{"Content-Type", "application/merge-patch+json"}, 400, status},
		{"strategic patch", "PATCH", "/api/v1/namespaces/default", "{\"metadata\":{\"annotations\":{\"a\":\"caf\xe9\"}}}", []string{"Content-Type", "application/strategic-merge-patch+json"}, 400, status},
		{"text of OpenAI", "POST", "/openai/v1/chat/completions", "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"caf\xe9\"}]}", []string{"Content-Type", "application/json"}, 400, openAI},

		{"REST condition", "DELETE", "/api/v1/agents/v", "", []string{"If-Match", `"1"`}, 412, envelope},
		{"condition", "DELETE", group + "agents/v", "", []string{"If-Match", `"1"`}, 412, status},
		{"create only", "PUT", group + "agents/v", `{"metadata":{"name":"v"},"spec":{}}`, []string{"If-None-Match", "*", "Content-Type", "application/json"}, 412, status},
	} {
		a := s.Ask(t, s.Admin, c.method, c.path, c.body, c.header...)
		form := strings.Replace(c.form, "CODE", map[int]string{400: "400", 412: "412"}[c.code], 1)
		if a.Code != c.code || !strings.Contains(a.Body, form) {
			t.Errorf("%s: %d %.300s, want %d in the form %s", c.name, a.Code, a.Body, c.code, form)
		}
	}
	s.Ask(t, s.Admin, "GET", group+"agents/v", "").Want(t, http.StatusOK)
	if a := s.Ask(t, s.Admin, "GET", group+"tasks", ""); strings.Contains(a.Body, `"name":"t"`) {
		t.Errorf("a task was created: %.300s", a.Body)
	}
	// Strangers learn nothing, and whole characters are text.
	for _, path := range []string{"/api/v1/agents?a;b", group + "agents?a;b"} {
		s.Ask(t, s.Anonymous(), "GET", path, "").Want(t, http.StatusUnauthorized)
	}
	s.Ask(t, s.Admin, "PATCH", group+"agents/v", `{"metadata":{"annotations":{"a":"café €"}}}`, "Content-Type", "application/merge-patch+json").Want(t, http.StatusOK, "café €")
}
