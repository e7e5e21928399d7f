// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestNumbersOutOfRange: a number that no double holds is refused with 400 and its place, wherever JSON of any form is taken and
// however it is sent. Managed fields are computed of what is decoded, which panics on such a number; Start fails on that.
func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	const group = "/apis/core.platform.ai/v1alpha1/namespaces/default/"
	tool := func(name, maximum string) string {
		return fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Tool","metadata":{"name":%q},"spec":{"description":"d","http":{"url":"https://example.test/x"},
			"parameters":{"type":"object","properties":{"k":{"type":"number","maximum":%s}}}}}`, name, maximum)
	}
	ask := func(method, path, contentType, body string) (int, string) {
		a := s.Ask(t, s.Admin, method, group+path, body, "Content-Type", contentType)
		return a.Code, a.Body
	}
	if code, body := ask(http.MethodPost, "tools", "application/json", tool("good", "1e308")); code != http.StatusCreated {
		t.Fatal(code, body)
	}
	call := `{"kind":"ToolCall","apiVersion":"core.platform.ai/v1alpha1","spec":{"taskName":"t","toolName":"code_exec","arguments":{"timeout":%s}}}`
	for _, n := range []string{"1e400", "-2E308", strings.Repeat("9", 400)} {
		for _, c := range []struct{ method, path, contentType, body string }{
			{"POST", "tools", "application/json", tool("bad", n)},
			{"POST", "tools", "application/yaml", tool("bad", n)},
			{"PUT", "tools/good", "application/json", tool("good", n)},
			{"PATCH", "tools/good", "application/merge-patch+json", `{"spec":{"parameters":{"maximum":` + n + `}}}`},
			{"PATCH", "tools/good", "application/strategic-merge-patch+json", `{"spec":{"parameters":{"maximum":` + n + `}}}`},
			{"PATCH", "tools/good", "application/json-patch+json", `[{"op":"add","path":"/spec/parameters/maximum","value":` + n + `}]`},
			{"PATCH", "tools/good?fieldManager=x&force=true", "application/apply-patch+yaml", tool("good", n)},
			{"POST", "toolcalls", "application/json", fmt.Sprintf(call, n)},
			{"POST", "tasks", "application/json", `{"kind":"Task","apiVersion":"core.platform.ai/v1alpha1","metadata":{"name":"t"},"spec":{"type":"container","command":["true"],"transaction":{"context":{"k":` + n + `}}}}`},
		} {
			code, body := ask(c.method, c.path, c.contentType, c.body)
			if code != http.StatusBadRequest && code != http.StatusUnprocessableEntity {
				t.Errorf("%s %s (%s) of %.12s: %d %.300s", c.method, c.path, c.contentType, n, code, body)
			}
		}
	}
	s.Ask(t, s.Admin, http.MethodPost, group+"toolcalls", fmt.Sprintf(call, "1e400"), "Content-Type", "application/json").
		Want(t, http.StatusBadRequest, "spec.arguments.timeout: the number 1e400 is out of range")
	s.Ask(t, s.Admin, http.MethodPost, "/api/v1/tools", tool("bad", "1e400"), "Content-Type", "application/json").
		Problem(t, http.StatusBadRequest)
}
