// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// Old events of an ended task are removed: a watch sees each of them deleted, pages
// and streams report the gap, and the terminal event stays. A task that has not ended
// keeps all of its events.
func TestRetention(t *testing.T) {
	t.Parallel()
	s := &streams{Server: standalone.Start(t, func(o *standalone.Options) { o.EventRetention = time.Nanosecond }), t: t}
	s.connect(nil)
	if _, err := s.In(t, sessions).Create(t.Context(), session("s"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.task("a", "s")
	s.task("b", "s")
	s.add("a", v1alpha1.EventTaskStarted, v1alpha1.EventWorkerStarted)
	s.add("b", v1alpha1.EventTaskStarted)
	s.add("a", v1alpha1.EventResultSubmitted, v1alpha1.EventTaskSucceeded, v1alpha1.EventTaskForkCreated)
	s.add("b", v1alpha1.EventWorkerStarted)
	list, err := s.In(t, standalone.ExecutionEvents).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	s.Restart(t) // the new server looks for old events at once
	s.connect(nil)
	w, err := s.In(t, standalone.ExecutionEvents).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"DELETED a.0000000001", "DELETED a.0000000002", "DELETED a.0000000003"} {
		e := <-w.ResultChan()
		if o, ok := e.Object.(*unstructured.Unstructured); !ok || string(e.Type)+" "+o.GetName() != want {
			t.Fatalf("got %s %v, want %s", e.Type, e.Object, want)
		}
	}

	const gap, complete = `3 gap {"fromSeq":1,"toSeq":3,"reason":"retention"}`, `5 stream_complete {"lastSeq":5,"type":"TaskSucceeded"}`
	s.open(standalone.TasksPath+"/a/stream").want(gap, "4 TaskSucceeded", "5 TaskForkCreated", complete, "EOF")
	s.open(standalone.TasksPath+"/a/stream?after=3").want("4 TaskSucceeded", "5 TaskForkCreated", complete, "EOF")
	s.open(standalone.TasksPath+"/b/stream").want("1 TaskStarted", "2 WorkerStarted")
	// The cursors of the session: a, a, b, a, a, a, b.
	s.open(sessionsPath+"/s/stream").want(
		`2 gap {"fromSeq":1,"toSeq":2,"reason":"retention"}`, "3 TaskStarted", `4 gap {"fromSeq":4,"toSeq":4,"reason":"retention"}`,
		"5 TaskSucceeded", "6 TaskForkCreated", "7 WorkerStarted")
	p := s.page(standalone.TasksPath + "/a/events?after=1")
	if d := cmp.Diff(&v1alpha1.EventGap{FromSeq: 2, ToSeq: 3, Reason: v1alpha1.GapRetention}, p.Gap); d != "" || len(p.Events) != 2 {
		t.Errorf("page of %d events, gap (-want +got):\n%s", len(p.Events), d)
	}
	if code, answer := s.do(http.MethodGet, "/apis/core.platform.ai/v1alpha1/namespaces/default/executionevents/a.0000000003", ""); code != http.StatusNotFound {
		t.Errorf("get of an event that left: %d %s", code, answer)
	}
	// An event that was stored once is not stored again, even after it was removed.
	s.wantCode(http.StatusGone, "a", v1alpha1.EventTaskStarted)
}

// wantCode appends an event as add does and checks the answer.
func (s *streams) wantCode(want int, task string, typ v1alpha1.EventType) {
	s.t.Helper()
	body := `{"type":"` + string(typ) + `","dedupKey":"` + string(typ) + ` 0"}`
	if code, answer := s.do(http.MethodPost, standalone.TasksPath+"/"+task+"/events", body); code != want {
		s.t.Errorf("append of %s to %s: %d %s, want %d", typ, task, code, answer, want)
	}
}
