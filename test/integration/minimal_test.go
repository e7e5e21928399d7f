// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestMinimalAnswers: a client that prefers the minimal answer does not get the events that it appended, natively. The
// answers of REST rows are what their document says, whatever the client prefers.
func TestMinimalAnswers(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	_, worker := restTask(t, s, "a")
	worker = worker.with("Prefer", "return=minimal")
	for _, body := range []string{
		`{"type":"ModelMessage","summary":"one","dedupKey":"k"}`,
		`{"type":"ModelMessage","summary":"one","dedupKey":"k"}`,
		`{"kind":"ExecutionEventList","apiVersion":"core.platform.ai/v1alpha1","items":[{"type":"ModelMessage","summary":"two"}]}`,
	} {
		got := worker.do(http.MethodPost, tasksPath+"/a/events", body)
		if got.code != http.StatusCreated || !strings.Contains(got.body, `"status":"Success"`) || strings.Contains(got.body, "ModelMessage") {
			t.Errorf("%s: %d %s", body, got.code, got.body)
		}
	}
	if got := worker.do(http.MethodPost, tasksPath+"/a/events", `{"type":"Nonsense"}`); got.code != http.StatusBadRequest || !strings.Contains(got.body, "Nonsense") {
		t.Errorf("an unknown type: %d %s", got.code, got.body)
	}
	if got := worker.do(http.MethodPost, "/internal/v1/events/default/task/a", `{"type":"ModelMessage","summary":"three"}`); got.code != http.StatusCreated ||
		!strings.Contains(got.body, `"seq":3`) {
		t.Errorf("REST: %d %s", got.code, got.body)
	}
	page := worker.do(http.MethodGet, tasksPath+"/a/events?type=ModelMessage", "").body
	for _, summary := range []string{"one", "two", "three"} {
		if strings.Count(page, `"`+summary+`"`) != 1 {
			t.Errorf("event %q is not stored once: %s", summary, page)
		}
	}
}
