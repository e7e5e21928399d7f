// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/kit"
)

func (s *server) mustTask(name, spec string) *v1alpha1.Task {
	s.t.Helper()
	return s.MustApply("tasks", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: "+name+"}\nspec: "+spec+"\n").(*v1alpha1.Task)
}

func ev(typ v1alpha1.EventType) *v1alpha1.ExecutionEvent {
	return &v1alpha1.ExecutionEvent{Type: typ, Summary: string(typ)}
}

// worker is who runs the task; a task that has no run gets one, as the controller gives it.
func (s *server) worker(t *v1alpha1.Task) context.Context {
	s.t.Helper()
	run := "run-" + string(t.UID)
	_, err := s.Update(s.User(), "tasks/status", t.Name, func(o runtime.Object) {
		if t := o.(*v1alpha1.Task); t.Status.JobUID == "" && !t.Status.Phase.Terminal() {
			t.Status.Phase, t.Status.JobUID = v1alpha1.TaskRunning, types.UID(run)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.workerOf(t, run)
}

// workerOf is who has the credential of a run.
func (s *server) workerOf(t *v1alpha1.Task, run string) context.Context {
	return s.As("system:serviceaccount:default:platform-ai-worker", map[string][]string{
		v1alpha1.ExtraTaskNamespace: {t.Namespace}, v1alpha1.ExtraTaskName: {t.Name}, v1alpha1.ExtraTaskUID: {string(t.UID)}, v1alpha1.ExtraTaskRun: {run},
	})
}

func TestAppendEvents(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container, sessionRef: {name: s}}`)
	got, err := s.CreateNamed(s.worker(a), "tasks/events", "a", ev(v1alpha1.EventWorkerStarted))
	if err != nil {
		t.Fatal(err)
	}
	e := got.(*v1alpha1.ExecutionEvent)
	if e.Name != "a.0000000001" || e.Seq != 1 || e.SessionName != "s" || e.OwnerReferences[0].UID != a.UID || e.ResourceVersion == "" {
		t.Errorf("stored: %+v", e)
	}
	got, err = s.CreateNamed(s.worker(a), "tasks/events", "a", &v1alpha1.ExecutionEventList{Items: []v1alpha1.ExecutionEvent{
		*ev(v1alpha1.EventModelRequestStarted), *ev(v1alpha1.EventModelRequestCompleted),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if l := got.(*v1alpha1.ExecutionEventList); len(l.Items) != 2 || l.Items[1].Seq != 3 {
		t.Errorf("list: %+v", l)
	}
	e = ev(v1alpha1.EventWorkerCompleted)
	e.TaskName = "a"
	if got, err = s.Create(s.User(), "executionevents", e); err != nil || got.(*v1alpha1.ExecutionEvent).Seq != 4 {
		t.Errorf("create of an executionevent: %v, %v", got, err)
	}
}

func TestAppendIsRefused(t *testing.T) {
	s := start(t)
	a, b := s.mustTask("a", `{type: container, sessionRef: {name: s}}`), s.mustTask("b", `{type: container}`)
	with := func(f func(*v1alpha1.ExecutionEvent)) *v1alpha1.ExecutionEvent {
		e := ev(v1alpha1.EventModelMessage)
		f(e)
		return e
	}
	many := &v1alpha1.ExecutionEventList{Items: []v1alpha1.ExecutionEvent{*ev(v1alpha1.EventModelMessage), *ev("Nonsense")}}
	for _, tc := range []struct {
		name string
		by   context.Context
		task string
		body runtime.Object
		code int32
		text string
	}{
		{"unknown task", s.User(), "c", ev(v1alpha1.EventModelMessage), 404, `tasks.core.platform.ai "c" not found`},
		{"unknown type", s.User(), "a", ev("Nonsense"), 400, "is not an event type"},
		{"unknown type in a list", s.User(), "a", many, 400, "items[1]: "},
		{"empty list", s.User(), "a", &v1alpha1.ExecutionEventList{}, 400, "at least one event"},
		{"session stream", s.User(), "a", with(func(e *v1alpha1.ExecutionEvent) { e.StreamType = v1alpha1.StreamSession }), 400, "streamType"},
		{"other task", s.User(), "a", with(func(e *v1alpha1.ExecutionEvent) { e.TaskName = "b" }), 400, "taskName"},
		{"other session", s.User(), "a", with(func(e *v1alpha1.ExecutionEvent) { e.SessionName = "z" }), 400, "sessionName"},
		{"too large", s.User(), "a", with(func(e *v1alpha1.ExecutionEvent) { e.ContentText = strings.Repeat("x", event.MaxBodyBytes+1) }), 413, "at most 262144 bytes"},
		{"terminal", s.worker(a), "a", ev(v1alpha1.EventTaskSucceeded), 403, "terminal task and approval events must use controller-owned paths"},
		{"decision", s.worker(a), "a", ev(v1alpha1.EventApprovalApproved), 403, "terminal task and approval events must use controller-owned paths"},
		{"worker of another task", s.worker(b), "a", ev(v1alpha1.EventModelMessage), 403, "for another task"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := s.refused()
			_, err := s.CreateNamed(tc.by, "tasks/events", tc.task, tc.body)
			checkStatus(t, err, tc.code, tc.text)
			// Requests about no task, without events, or by a worker of another task are refused before there is an event.
			if counts := !slices.Contains([]string{"unknown task", "empty list", "worker of another task"}, tc.name); counts != (s.refused() > before) {
				t.Errorf("counted as a failure: %v", !counts)
			}
		})
	}
	for text, e := range map[string]*v1alpha1.ExecutionEvent{
		`tasks.core.platform.ai "c" not found`: with(func(e *v1alpha1.ExecutionEvent) { e.TaskName = "c" }),
		"taskName: is required":                ev(v1alpha1.EventModelMessage),
	} {
		before := s.refused()
		if _, err := s.Create(s.User(), "executionevents", e); err == nil || !strings.Contains(err.Error(), text) || s.refused() != before+1 {
			t.Errorf("create of an executionevent: %v; %v events count as failures", err, s.refused()-before)
		}
	}
	if h, err := s.Log.Head(t.Context(), eventlog.Stream{Namespace: "default", Task: "a", UID: a.UID}); err != nil || h.LatestSeq != 0 {
		t.Errorf("a refused event was stored: %+v, %v", h, err)
	}
}

func checkStatus(t *testing.T, err error, code int32, text string) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want %d: %s", err, code, text)
	}
}

func TestNothingFollowsTheEnd(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container}`)
	s.SetPhase("a", v1alpha1.TaskFailed)
	_, err := s.CreateNamed(s.worker(a), "tasks/events", "a", ev(v1alpha1.EventModelMessage))
	checkStatus(t, err, 409, "has ended")
	// The controller may still write the terminal event, and nothing after it.
	if _, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", "a", ev(v1alpha1.EventTaskFailed)); err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateNamed(s.As(controllers, nil), "tasks/events", "a", ev(v1alpha1.EventTaskPhaseChanged))
	checkStatus(t, err, 409, "stream is closed")

	b := s.mustTask("b", `{type: container}`)
	if _, err := s.Update(s.User(), "tasks", "b", func(o runtime.Object) { o.(*v1alpha1.Task).Finalizers = []string{v1alpha1.FinalizerCleanup} }); err != nil {
		t.Fatal(err)
	}
	s.Remove("tasks", "b")
	_, err = s.CreateNamed(s.worker(b), "tasks/events", "b", ev(v1alpha1.EventModelMessage))
	checkStatus(t, err, 410, "is being deleted")
	if _, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", "b", ev(v1alpha1.EventTaskCancelled)); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	s := start(t)
	a := s.mustTask("a", `{type: container}`)
	for _, reason := range []string{"not needed", "again"} {
		got, err := s.CreateNamed(s.User(), "tasks/cancel", "a", &v1alpha1.TaskCancellation{Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(got.(*v1alpha1.Task).Status.Conditions, v1alpha1.ConditionCancelRequested)
		if c == nil || c.Status != metav1.ConditionTrue || c.Message != "not needed" || c.LastTransitionTime.IsZero() {
			t.Errorf("condition: %+v", c)
		}
	}
	if got := s.Task("a"); got.Generation != a.Generation {
		t.Errorf("generation %d", got.Generation)
	}
	s.SetPhase("a", v1alpha1.TaskCancelled)
	_, err := s.CreateNamed(s.User(), "tasks/cancel", "a", &v1alpha1.TaskCancellation{})
	checkStatus(t, err, 409, "it is Cancelled")
	_, err = s.CreateNamed(s.User(), "tasks/cancel", "a", &v1alpha1.TaskCancellation{Reason: strings.Repeat("x", 1025)})
	checkStatus(t, err, 400, "at most 1024 characters")
}

// TestBodyOfAnotherObject: no subresource takes a body whose metadata is another object's than the path's, for which the request was
// authorized. That of the object itself is no mistake.
func TestBodyOfAnotherObject(t *testing.T) {
	s := start(t)
	a, tried := s.mustTask("a", `{type: container}`), 0
	for path, storage := range s.Storage {
		if _, named := storage.(rest.NamedCreater); !named || !strings.HasPrefix(path, "tasks/") {
			continue
		}
		tried++
		for _, tc := range []struct {
			meta metav1.ObjectMeta
			code int32
			text string
		}{
			{metav1.ObjectMeta{Name: "b"}, 400, "metadata.name"},
			{metav1.ObjectMeta{Name: "a", Namespace: "other"}, 400, "metadata.namespace"},
			{metav1.ObjectMeta{UID: "b"}, 409, "metadata.uid"},
		} {
			body := storage.New()
			m, err := meta.Accessor(body)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			m.SetName(tc.meta.Name)
			m.SetNamespace(tc.meta.Namespace)
			m.SetUID(tc.meta.UID)
			_, err = s.CreateNamed(s.User(), path, "a", body)
			checkStatus(t, err, tc.code, tc.text)
		}
	}
	if tried < 6 {
		t.Errorf("%d subresources", tried)
	}
	if _, err := s.CreateNamed(s.User(), "tasks/cancel", "a", &v1alpha1.TaskCancellation{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace, UID: a.UID}}); err != nil {
		t.Error(err)
	}
}

func TestContent(t *testing.T) {
	s := start(t)
	a, b := s.mustTask("a", `{type: container}`), s.mustTask("b", `{type: container}`)
	ten := make([]byte, 10<<20)
	ten[5] = 'x'
	step := func(ctx context.Context, path, sub, what string, body []byte, code int, want string) http.Header {
		t.Helper()
		w := s.Call(ctx, path, "a", sub, what, body)
		if w.Code != code || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %s/%s: %d %.200q, want %d %q", what, path, sub, w.Code, w.Body, code, want)
		}
		return w.Header()
	}
	step(s.User(), "tasks/result", "", "GET", nil, 404, "is still to come: it is Pending")
	me := s.worker(a)
	step(me, "tasks/result", "", "GET", nil, 404, "is still to come: it is Running")
	step(me, "tasks/result", "", "POST", []byte(" \n"), 400, "must not be blank")
	step(me, "tasks/result", "", "POST", nil, 400, "must not be blank")
	step(me, "tasks/result", "", "POST", append(ten, 'x'), 413, "at most 10485760 bytes")
	step(s.worker(b), "tasks/result", "", "POST", []byte("forged"), 403, "for another task")
	step(me, "tasks/result", "", "POST", ten, 204, "")
	step(me, "tasks/result", "", "POST", []byte("the answer"), 204, "")
	w := s.Call(s.User(), "tasks/result", "a", "", "GET", nil)
	var result v1alpha1.TaskResult
	if err := json.Unmarshal(w.Body.Bytes(), &result); err != nil || result.Kind != "TaskResult" || result.Result != "the answer" {
		t.Errorf("result: %s, %v", w.Body, err)
	}

	step(me, "tasks/log", "", "POST", []byte("one\n"), 204, "")
	step(me, "tasks/log", "", "POST", []byte("two\n"), 204, "")
	step(s.worker(b), "tasks/log", "", "POST", []byte("forged"), 403, "for another task")
	if r := step(s.User(), "tasks/log", "", "GET", nil, 200, "one\ntwo\n"); r.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("log: %v", r)
	}
	step(s.User(), "tasks/log", "", "GET ?follow=maybe", nil, 400, "must be true or false")

	step(me, "tasks/artifacts", "", "POST", []byte("x"), 400, "filename: is required")
	step(me, "tasks/artifacts", "a/b", "POST", []byte("x"), 400, "one path element")
	step(me, "tasks/artifacts", "..", "POST", []byte("x"), 400, "one path element")
	step(me, "tasks/artifacts", strings.Repeat("x", 256), "POST", []byte("x"), 400, "at most 255 bytes")
	step(s.worker(b), "tasks/artifacts", "f", "POST", []byte("x"), 403, "for another task")
	step(me, "tasks/artifacts", "page.html", "POST", []byte("<html>"), 201, "")
	step(me, "tasks/artifacts", "empty", "POST", nil, 201, "")
	h := step(s.User(), "tasks/artifacts", "page.html", "GET", nil, 200, "<html>")
	if h.Get("Content-Disposition") != "attachment; filename=page.html" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Length") != "6" {
		t.Errorf("headers: %v", h)
	}
	step(s.User(), "tasks/artifacts", "absent", "GET", nil, 404, `"absent" not found`)
	w = s.Call(s.User(), "tasks/artifacts", "a", "", "GET", nil)
	var list v1alpha1.TaskArtifactList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Artifacts) != 2 || list.Artifacts[1].Filename != "page.html" || list.Artifacts[1].Size != 6 || list.Artifacts[1].CreatedAt.IsZero() {
		t.Errorf("artifacts: %s, %v", w.Body, err)
	}
}

// noPauses is a clock on which nobody may wait.
type noPauses struct {
	*clocktesting.FakeClock

	t *testing.T
}

func (p *noPauses) After(d time.Duration) <-chan time.Time {
	p.t.Errorf("a follower of a log looks again after %v", d)
	return p.FakeClock.After(0)
}

// TestFollowedLogEndsWithTheTask: those who follow a log get what is added as it is added, and the end when the task ends or is deleted.
// They need no clock for that.
func TestFollowedLogEndsWithTheTask(t *testing.T) {
	s := startAt(t, t.TempDir(), &noPauses{clocktesting.NewFakeClock(noon), t})
	a := s.mustTask("a", `{type: container}`)
	s.Call(s.worker(a), "tasks/log", "a", "", "POST", []byte("first\n"))
	done := make(chan string)
	follow := func(ctx context.Context, name string) {
		go func() { done <- s.Call(ctx, "tasks/log", name, "", "GET ?follow=true", nil).Body.String() }()
	}
	follow(s.User(), "a")
	for i := range 100 {
		s.Call(s.worker(a), "tasks/log", "a", "", "POST", fmt.Appendf(nil, "%d\n", i))
	}
	follow(s.User(), "a")
	select {
	case got := <-done:
		t.Fatalf("the log of a living task ended: %q", got)
	default:
	}
	s.Call(s.worker(a), "tasks/log", "a", "", "POST", []byte("last\n"))
	s.SetPhase("a", v1alpha1.TaskSucceeded)
	for range 2 {
		if got := <-done; !strings.HasPrefix(got, "first\n0\n1\n") || !strings.HasSuffix(got, "98\n99\nlast\n") {
			t.Errorf("followed: %q", got)
		}
	}
	s.mustTask("gone", `{type: container}`)
	follow(s.User(), "gone")
	if _, _, err := s.Storage["tasks"].(rest.GracefulDeleter).Delete(s.User(), "gone", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	<-done
	ctx, cancel := context.WithCancel(s.User())
	s.mustTask("b", `{type: container}`)
	follow(ctx, "b")
	cancel()
	if got := <-done; got != "" {
		t.Errorf("cancelled: %q", got)
	}
}

func TestContentLeavesWithTheTask(t *testing.T) {
	dir := t.TempDir()
	s := startIn(t, dir)
	a := s.mustTask("a", `{type: container}`)
	if _, err := s.CreateNamed(s.worker(a), "tasks/events", "a", ev(v1alpha1.EventWorkerStarted)); err != nil {
		t.Fatal(err)
	}
	s.Call(s.worker(a), "tasks/log", "a", "", "POST", []byte("x"))
	s.Remove("tasks", "a")
	again := s.mustTask("a", `{type: container}`)
	if w := s.Call(s.User(), "tasks/log", "a", "", "GET", nil); w.Body.Len() > 0 {
		t.Errorf("the new task has the old one's log: %s", w.Body)
	}
	if got := s.list(internalversion.ListOptions{}); len(got) > 0 {
		t.Errorf("events are left: %v", got)
	}
	// What a crash left behind is found at the next start.
	s.Call(s.worker(again), "tasks/log", "a", "", "POST", []byte("mine"))
	if err := s.Blobs.AppendLog(t.Context(), "default", "gone", []byte("x")); err != nil {
		t.Fatal(err)
	}
	left, err := s.Log.Append(t.Context(), eventlog.Stream{Namespace: "default", Task: "gone", UID: "gone"}, []*v1alpha1.ExecutionEvent{ev(v1alpha1.EventTaskStarted)})
	if err != nil || left[0].ResourceVersion == "" {
		t.Fatalf("%v: %v", left, err)
	}
	s.Close()
	s = startIn(t, dir)
	// From there on, since the orphan may be gone before the watch begins.
	w := s.watch(internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("taskName", "gone"), ResourceVersion: left[0].ResourceVersion})
	for e := range w.ResultChan() {
		if e.Type == watch.Deleted {
			break
		}
	}
	w.Stop()
	kit.Await(t, "the orphan's log goes after its events", func() bool {
		log, err := s.Blobs.ReadLog(t.Context(), "gone", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(log) == 0
	})
	if w := s.Call(s.User(), "tasks/log", "a", "", "GET", nil); w.Body.String() != "mine" {
		t.Errorf("the living task lost its log: %q", w.Body)
	}
}

func (s *server) list(o internalversion.ListOptions) []string {
	s.t.Helper()
	list, err := s.Storage["executionevents"].(rest.Lister).List(s.User(), &o)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range list.(*v1alpha1.ExecutionEventList).Items {
		names = append(names, e.Name)
	}
	return names
}

func (s *server) watch(o internalversion.ListOptions) watch.Interface {
	s.t.Helper()
	w, err := s.Storage["executionevents"].(rest.Watcher).Watch(s.User(), &o)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

func TestEventSelectors(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b"} {
		s.mustTask(name, `{type: container, sessionRef: {name: s-`+name+`}}`)
		for _, typ := range []v1alpha1.EventType{v1alpha1.EventTaskStarted, v1alpha1.EventToolCallFailed} {
			e := ev(typ)
			if typ == v1alpha1.EventToolCallFailed {
				e.Severity = v1alpha1.SeverityError
			}
			if _, err := s.CreateNamed(s.As(controllers, nil), "tasks/events", name, e); err != nil {
				t.Fatal(err)
			}
		}
	}
	const a1, a2, b1, b2 = "a.0000000001", "a.0000000002", "b.0000000001", "b.0000000002"
	for _, tc := range []struct {
		selector string
		want     []string
	}{
		{"", []string{a1, a2, b1, b2}},
		{"taskName=a", []string{a1, a2}},
		{"taskName!=a", []string{b1, b2}},
		{"taskName=a,taskName=b", nil},
		{"taskName=", nil},
		{"sessionName=s-b,type=TaskStarted", []string{b1}},
		{"severity=error", []string{a2, b2}},
		{"severity!=error,type!=TaskSucceeded", []string{a1, b1}},
		{"metadata.name=" + b2, []string{b2}},
		{"metadata.name=nonsense", nil},
		{"metadata.namespace=default,taskName=b", []string{b1, b2}},
		{"metadata.namespace=other", nil},
	} {
		sel, err := fields.ParseSelector(tc.selector)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, s.list(internalversion.ListOptions{FieldSelector: sel})); d != "" {
			t.Errorf("%q (-want +got):\n%s", tc.selector, d)
		}
		w := s.watch(internalversion.ListOptions{FieldSelector: sel})
		var got []string
		for range tc.want {
			got = append(got, (<-w.ResultChan()).Object.(*v1alpha1.ExecutionEvent).Name)
		}
		w.Stop()
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("watch of %q (-want +got):\n%s", tc.selector, d)
		}
	}
	_, err := s.Storage["executionevents"].(rest.Lister).List(s.User(), &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", "Nonsense")})
	checkStatus(t, err, 400, "is not an event type")
	_, err = s.Storage["executionevents"].(rest.Lister).List(s.User(), &internalversion.ListOptions{ResourceVersion: "999999"})
	checkStatus(t, err, 504, "Too large resource version")
	_, err = s.Storage["executionevents"].(rest.Lister).List(s.User(), &internalversion.ListOptions{Continue: "x"})
	checkStatus(t, err, 400, "continue")
	_, err = s.Storage["executionevents"].(rest.Getter).Get(s.User(), "a.0000000009", &metav1.GetOptions{})
	checkStatus(t, err, 404, `"a.0000000009" not found`)
}

func TestEventPages(t *testing.T) {
	s := start(t)
	s.mustTask("a", `{type: container}`)
	var events v1alpha1.ExecutionEventList
	for range 5 {
		events.Items = append(events.Items, *ev(v1alpha1.EventModelMessage))
	}
	if _, err := s.CreateNamed(s.User(), "tasks/events", "a", &events); err != nil {
		t.Fatal(err)
	}
	var got []string
	for o := (internalversion.ListOptions{Limit: 2}); ; {
		obj, err := s.Storage["executionevents"].(rest.Lister).List(s.User(), &o)
		if err != nil {
			t.Fatal(err)
		}
		l := obj.(*v1alpha1.ExecutionEventList)
		if len(l.Items) > 2 || l.ResourceVersion == "" {
			t.Errorf("page: %+v", l.ListMeta)
		}
		for _, e := range l.Items {
			got = append(got, e.Name[len(e.Name)-1:])
		}
		if l.Continue == "" {
			break
		}
		o.Continue = l.Continue
	}
	if want := "1 2 3 4 5"; strings.Join(got, " ") != want {
		t.Errorf("pages: %v", got)
	}
}

func TestTables(t *testing.T) {
	s := start(t)
	s.mustTask("a", `{type: ai, agentRef: {name: writer}, prompt: p}`)
	table, err := s.Storage["tasks"].(rest.TableConvertor).ConvertToTable(s.User(), s.Task("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, c.Name)
		}
	}
	if got := strings.ToUpper(strings.Join(names, " ")); got != "NAME PHASE AGENT MODEL TOKENS AGE" {
		t.Errorf("columns: %s", got)
	}
	if got := table.Rows[0].Cells[:5]; !cmp.Equal(got, []any{"a", "Pending", "writer", "", "unavailable"}) {
		t.Errorf("cells: %v", got)
	}
}

func TestSkillContent(t *testing.T) {
	s := start(t)
	s.MustApply("skills", "apiVersion: core.platform.ai/v1alpha1\nkind: Skill\nmetadata: {name: a}\nspec: {description: d, content: {inline: '# Hi'}}\n")
	w := s.Call(s.User(), "skills/content", "a", "", "GET", nil)
	if w.Code != 200 || w.Body.String() != "# Hi" || !bytes.HasPrefix([]byte(w.Header().Get("Content-Type")), []byte("text/markdown")) {
		t.Errorf("content: %d %v %s", w.Code, w.Header(), w.Body)
	}
}
