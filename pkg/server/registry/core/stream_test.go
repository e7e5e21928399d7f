// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A worker may read only the events of its own task and session.
func TestWorkersReadTheirOwnEvents(t *testing.T) {
	s := start(t)
	s.mustSession("s", "task")
	a, b := s.mustTask("a", `{type: container, sessionRef: {name: s}}`), s.mustTask("b", `{type: container}`)
	if _, err := s.CreateNamed(s.worker(a), "tasks/events", "a", ev(v1alpha1.EventWorkerStarted)); err != nil {
		t.Fatal(err)
	}
	for path, tc := range map[string]struct{ of, refusal string }{
		"tasks/events": {"a", "for another task"}, "tasks/stream": {"a", "for another task"},
		"sessions/events": {"s", "does not use this session"}, "sessions/stream": {"s", "does not use this session"},
	} {
		if w := s.Call(s.worker(b), path, tc.of, "", http.MethodGet, nil); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), tc.refusal) {
			t.Errorf("%s of another task: %d %s", path, w.Code, w.Body)
		}
		if strings.HasSuffix(path, "stream") {
			continue // needs a connection, which a recorder lacks
		}
		if w := s.Call(s.worker(a), path, tc.of, "", http.MethodGet, nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "WorkerStarted") {
			t.Errorf("%s of the own task: %d %s", path, w.Code, w.Body)
		}
	}
}

// A stream of several is refused, before anything is sent, to whoever may not get the stream of each: also to the worker
// of one of the tasks.
func TestStreamsOfSeveral(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container}`)
	s.mustTask("b", `{type: container}`)
	if w := s.Call(s.User(), "tasks/stream", "a", "", http.MethodGet+" ?tasks=nosuch", nil); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `"nosuch" not found`) {
		t.Errorf("a task that does not exist: %d %s", w.Code, w.Body)
	}
	if w := s.Call(s.worker(a), "tasks/stream", "a", "", http.MethodGet+" ?tasks=b", nil); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "needs the right to get it") {
		t.Errorf("a worker: %d %s", w.Code, w.Body)
	}
}
