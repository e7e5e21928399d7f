// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

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
	_, worker := s.RESTTask(t, "a")
	worker = worker.With("Prefer", "return=minimal")
	for _, body := range []string{
		`{"type":"ModelMessage","summary":"one","dedupKey":"k"}`,
		`{"type":"ModelMessage","summary":"one","dedupKey":"k"}`,
		`{"kind":"ExecutionEventList","apiVersion":"core.platform.ai/v1alpha1","items":[{"type":"ModelMessage","summary":"two"}]}`,
	} {
		got := worker.Do(http.MethodPost, standalone.TasksPath+"/a/events", body)
		if got.Code != http.StatusCreated || !strings.Contains(got.Body, `"status":"Success"`) || strings.Contains(got.Body, "ModelMessage") {
			t.Errorf("%s: %d %s", body, got.Code, got.Body)
		}
	}
	if got := worker.Do(http.MethodPost, standalone.TasksPath+"/a/events", `{"type":"Nonsense"}`); got.Code != http.StatusBadRequest || !strings.Contains(got.Body, "Nonsense") {
		t.Errorf("an unknown type: %d %s", got.Code, got.Body)
	}
	if got := worker.Do(http.MethodPost, "/internal/v1/events/default/task/a", `{"type":"ModelMessage","summary":"three"}`); got.Code != http.StatusCreated ||
		!strings.Contains(got.Body, `"seq":3`) {
		t.Errorf("REST: %d %s", got.Code, got.Body)
	}
	page := worker.Do(http.MethodGet, standalone.TasksPath+"/a/events?type=ModelMessage", "").Body
	for _, summary := range []string{"one", "two", "three"} {
		if strings.Count(page, `"`+summary+`"`) != 1 {
			t.Errorf("event %q is not stored once: %s", summary, page)
		}
	}
}
