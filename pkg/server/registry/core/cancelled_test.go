// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func (s *server) cancel(name string) {
	s.t.Helper()
	if _, err := s.CreateNamed(s.User(), "tasks/cancel", name, &v1alpha1.TaskCancellation{}); err != nil {
		s.t.Error(err)
	}
}

// starting is the content of the event of a controller that starts an attempt.
func starting() map[string]any {
	return map[string]any{"from": string(v1alpha1.TaskPending), "to": string(v1alpha1.TaskRunning), "attempt": 1}
}

// TestNothingBeginsAfterCancel: once a task is marked as cancelled, the server stores no event that begins work of it, whoever sends it,
// and also after a restart. What reports the end of work is stored, and a repeated event is answered as before.
func TestNothingBeginsAfterCancel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startIn(t, dir)
	one := s.mustTask("one", "{type: ai, prompt: x}")
	two := s.mustTask("two", "{type: ai, prompt: x}")
	tell := func(name string, typ v1alpha1.EventType, key string, content map[string]any) error {
		by := s.worker(map[string]*v1alpha1.Task{"one": one, "two": two}[name])
		if event.ControllerOwned(typ) {
			by = s.As(controllers, nil)
		}
		return s.tell(by, name, typ, key, content)
	}
	request := map[string]any{"iteration": 1, "attempt": 1}
	for _, name := range []string{"one", "two"} {
		if err := tell(name, v1alpha1.EventModelRequestStarted, "before", request); err != nil {
			t.Fatal(err)
		}
	}
	s.cancel("one")
	for _, when := range []string{"at once", "after a restart"} {
		refused := 0
		for _, typ := range event.Types() {
			content := map[string]any(nil)
			if typ == v1alpha1.EventTaskPhaseChanged {
				content = starting()
			}
			if !event.Begins(event.New(typ, v1alpha1.SeverityInfo, "", "x", content)) || typ == v1alpha1.EventApprovalRequested { // whose content is checked before
				continue
			}
			refused++
			if err := tell("one", typ, when, content); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the task was cancelled") {
				t.Errorf("%s, %s: %v", when, typ, err)
			}
			if err := tell("two", typ, when, content); err != nil {
				t.Errorf("%s, %s of another task: %v", when, typ, err)
			}
		}
		if refused != 9 {
			t.Errorf("%s: %d types begin work", when, refused)
		}
		if err := tell("one", v1alpha1.EventModelRequestStarted, "before", request); err != nil {
			t.Errorf("%s, the repetition of an event: %v", when, err)
		}
		for _, typ := range []v1alpha1.EventType{v1alpha1.EventModelRequestFailed, v1alpha1.EventToolCallFailed, v1alpha1.EventWorkerFailed} {
			if err := tell("one", typ, when, request); err != nil {
				t.Errorf("%s, %s: %v", when, typ, err)
			}
		}
		s.Close()
		s = startIn(t, dir)
	}
}

// TestCancelInOrder: events that begin work and come at the same time as a cancellation are stored before its mark, or not at all.
func TestCancelInOrder(t *testing.T) {
	t.Parallel()
	s := startIn(t, t.TempDir())
	for round := range 20 {
		name := fmt.Sprint("t", round)
		one := s.mustTask(name, "{type: ai, prompt: x}")
		me := s.worker(one)
		var all sync.WaitGroup
		began := make(chan struct{}, 1)
		for client := range 4 {
			all.Go(func() {
				for n := 0; ; n++ {
					err := s.tell(me, name, v1alpha1.EventModelRequestStarted, fmt.Sprint(client, "/", n), map[string]any{"iteration": n, "attempt": client})
					select {
					case began <- struct{}{}:
					default:
					}
					if apierrors.IsForbidden(err) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		<-began
		s.cancel(name)
		all.Wait()
		page, err := s.Log.TaskPage(t.Context(), eventlog.Stream{Namespace: one.Namespace, Task: name, UID: one.UID}, 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last := page.Events[len(page.Events)-1]; last.DedupKey != event.CancelKey {
			t.Errorf("%s: event %d is a %s, after the mark", name, last.Seq, last.Type)
		}
	}
}

// TestApprovalAfterCancel: what a cancelled task asked for can be declined, and not be approved any more: nothing would come of it. A
// decision that was made before can be repeated. The task cannot ask for more.
func TestApprovalAfterCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	task := s.mustTask("a", `{type: ai, prompt: go}`)
	ids := make([]string, 3)
	for i := range ids {
		spec := v1alpha1.ApprovalSpec{TaskName: "a", TaskUID: task.UID, TargetTool: "exec", TargetArgsDigest: fmt.Sprintf("%064x", i)}
		e := approval.RequestEvent("default", spec)
		if _, err := s.CreateNamed(s.User(), "tasks/events", "a", e); err != nil {
			t.Fatal(err)
		}
		ids[i] = approval.ID("default", "a", task.UID, spec.TargetTool, spec.TargetArgsDigest, "")
	}
	decide := func(id, decision string) error {
		_, err := s.CreateNamed(s.User(), "approvals/decision", id, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: decision}})
		return err
	}
	if err := decide(ids[0], "approve"); err != nil {
		t.Fatal(err)
	}
	s.cancel("a")
	late := approval.RequestEvent("default", v1alpha1.ApprovalSpec{TaskName: "a", TaskUID: task.UID, TargetTool: "exec", TargetArgsDigest: fmt.Sprintf("%064x", len(ids))})
	if _, err := s.CreateNamed(s.worker(task), "tasks/events", "a", late); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the task was cancelled") {
		t.Errorf("a request after the cancellation: %v", err)
	}
	checkStatus(t, decide(ids[1], "approve"), 409, `task "a" was cancelled`)
	for i, decision := range []string{"approve", "decline", "decline"} {
		if err := decide(ids[i], decision); err != nil {
			t.Errorf("%d, %s: %v", i, decision, err)
		}
	}
}

// TestApprovalOfAChangedTool: whoever approves a call of a Tool that has changed since it was asked for is refused, and the approval
// is void with an event that says why, as the controller would have made it. It can be declined, and one of the present Tool approved.
func TestApprovalOfAChangedTool(t *testing.T) {
	t.Parallel()
	s := start(t)
	task := s.mustTask("a", `{type: ai, prompt: go}`)
	made := s.MustApply("tools", withHead("kind: Tool\nspec: {description: d, http: {url: 'https://one.example/'}}", "deploy")).(*v1alpha1.Tool)
	asked := 0
	ask := func(o *v1alpha1.Tool) string {
		asked++
		e, id, err := approval.Call{
			Namespace: "default", Task: "a", TaskUID: task.UID, Attempt: 1, Request: asked, Tool: "deploy", Object: o, ArgsDigest: fmt.Sprintf("%064x", asked),
		}.Event()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CreateNamed(s.User(), "tasks/events", "a", e); err != nil {
			t.Fatal(err)
		}
		return id
	}
	decide := func(id, decision string) error {
		_, err := s.CreateNamed(s.User(), "approvals/decision", id, &v1alpha1.ApprovalDecision{Spec: v1alpha1.ApprovalDecisionSpec{Decision: decision}})
		return err
	}
	before, first, second, declined := ask(made), ask(made), ask(made), ask(made)
	if err := decide(before, "approve"); err != nil {
		t.Fatal(err)
	}
	obj, err := s.Update(s.User(), "tools", "deploy", func(o runtime.Object) { o.(*v1alpha1.Tool).Spec.HTTP.URL = "https://two.example/" })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		checkStatus(t, decide(first, "approve"), 409, `it was cancelled: Tool "deploy" changed (from generation 1 to 2), and this run would call what it was before`)
	}
	for id, decision := range map[string]string{before: "approve", declined: "decline", ask(obj.(*v1alpha1.Tool)): "approve", ask(nil): "approve"} {
		if err := decide(id, decision); err != nil {
			t.Errorf("%s: %v", decision, err)
		}
	}
	s.Remove("tools", "deploy")
	checkStatus(t, decide(second, "approve"), 409, `Tool "deploy" was deleted`)
}
