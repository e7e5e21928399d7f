// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/coretest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// traced creates a task with n events and returns it with its stream.
func (s *server) traced(name string, n int, text string) (*v1alpha1.Task, eventlog.Stream) {
	s.t.Helper()
	task := s.mustTask(name, `{type: container, command: ["true"]}`)
	st := eventlog.Stream{Namespace: "default", Task: name, UID: task.UID}
	events := make([]*v1alpha1.ExecutionEvent, n)
	for i := range events {
		events[i] = ev([]v1alpha1.EventType{v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted}[i%2])
		events[i].ToolCallID, events[i].ContentText = fmt.Sprint(i/2), text
	}
	if _, err := s.Log.Append(s.t.Context(), st, events); err != nil {
		s.t.Fatal(err)
	}
	return task, st
}

func (s *server) trace(name, query string) *v1alpha1.TaskTrace {
	s.t.Helper()
	w := s.Call(s.User(), "tasks/trace", name, "", "GET "+query, nil)
	tr := &v1alpha1.TaskTrace{}
	if err := json.Unmarshal(w.Body.Bytes(), tr); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
		s.t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	return tr
}

func TestTraceOfNothing(t *testing.T) {
	s := start(t)
	s.mustTask("t", `{type: container, command: ["true"]}`)
	w := s.Call(s.User(), "tasks/trace", "t", "", "GET", nil)
	for _, list := range []string{"timeline", "modelRequests", "toolCalls", "childTasks", "workspace", "artifacts", "errors", "warnings", "criticalPath", "rawUnpaired"} {
		if !strings.Contains(w.Body.String(), `"`+list+`":[]`) {
			t.Errorf("no empty list %s in %s", list, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), "terminalEvent") || strings.Contains(w.Body.String(), "usage") {
		t.Errorf("more than is known: %s", w.Body)
	}
}

func TestTraceTellsOfAGap(t *testing.T) {
	s := start(t)
	_, st := s.traced("t", 9, "")
	if err := s.Log.Trim(t.Context(), st, 4); err != nil {
		t.Fatal(err)
	}
	tr := s.trace("t", "")
	if d := cmp.Diff(&v1alpha1.EventGap{FromSeq: 1, ToSeq: 3, Reason: "retention"}, tr.Gap); d != "" {
		t.Error(d)
	}
	if len(tr.Timeline) != 6 || len(tr.ToolCalls) != 3 || len(tr.RawUnpaired) != 1 || tr.RawUnpaired[0].Seq != 4 || tr.LatestSeq != 9 {
		t.Errorf("%d events, %d calls, unpaired %+v", len(tr.Timeline), len(tr.ToolCalls), tr.RawUnpaired)
	}
	if tr.ToolCalls[2].Status != v1alpha1.SpanRunning || len(tr.Warnings) != 1 {
		t.Errorf("%+v, warnings %+v", tr.ToolCalls[2], tr.Warnings)
	}
	// Events that are removed between two pages are reported as missing too.
	first := s.trace("t", "?limit=2")
	if err := s.Log.Trim(t.Context(), st, 8); err != nil {
		t.Fatal(err)
	}
	second := s.trace("t", "?continue="+first.Continue)
	if second.Gap == nil || second.Gap.FromSeq != 6 || second.Gap.ToSeq != 7 || len(second.Timeline) != 2 {
		t.Errorf("second page: gap %+v, %d events", second.Gap, len(second.Timeline))
	}
}

// interrupting runs a func at the first write.
type interrupting struct {
	http.ResponseWriter
	then func()
}

func (w *interrupting) Write(b []byte) (int, error) {
	if w.then != nil {
		w.then()
		w.then = nil
	}
	return w.ResponseWriter.Write(b)
}

// If a trace cannot be completed, the answer is aborted.
func TestTraceIsCutNotShortened(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, then := range map[string]func(eventlog.Stream, context.CancelFunc) error{
		"deleted": func(st eventlog.Stream, _ context.CancelFunc) error { return s.Log.DeleteStream(t.Context(), st) },
		"trimmed": func(st eventlog.Stream, _ context.CancelFunc) error { return s.Log.Trim(t.Context(), st, 1990) },
		"ended":   func(_ eventlog.Stream, cancel context.CancelFunc) error { cancel(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, st := s.traced(name, 2000, strings.Repeat("long ", 100))
			caller, _ := request.UserFrom(s.User())
			ctx, cancel := context.WithCancel(request.WithUser(coretest.WithoutValues{Context: s.User()}, caller))
			defer cancel()
			answer := httptest.NewRecorder()
			h, err := s.Storage["tasks/trace"].(rest.Connecter).Connect(coretest.WithPath(s.User(), "tasks/trace"), name, nil, s.Responder(answer))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, http.ErrAbortHandler) || json.Valid(answer.Body.Bytes()) {
					t.Errorf("the answer ended with %v after %d bytes", err, answer.Body.Len())
				}
			}()
			h.ServeHTTP(&interrupting{answer, func() {
				if err := then(st, cancel); err != nil {
					t.Error(err)
				}
			}}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		})
	}
	// Before anything was sent, the error is answered like any other.
	_, st := s.traced("gone", 1, "")
	if err := s.Log.DeleteStream(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if w := s.Call(s.User(), "tasks/trace", "gone", "", "GET", nil); w.Code != http.StatusGone {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWorkerReadsItsOwnTraceOnly(t *testing.T) {
	s := start(t)
	a, _ := s.traced("a", 2, "")
	s.traced("b", 2, "")
	for name, want := range map[string]int{"a": http.StatusOK, "b": http.StatusForbidden} {
		if w := s.Call(s.worker(a), "tasks/trace", name, "", "GET", nil); w.Code != want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
