// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/approval/approvaltest"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
	law "github.com/platform-ai/platform/pkg/event"
)

func waiting(t *v1alpha1.Task) {
	isStarted(t)
	tellParked(t, []v1alpha1.Approval{approvaltest.Asked("a", 1)})
}

func TestParked(t *testing.T) {
	const waits = "waiting for approval a to call drop"
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		pending []v1alpha1.Approval
		next    error
		parkErr error
		want    string
		parked  string // what the executor was told
		events  []string
		cond    string // status, reason and message of the condition
		message string
	}{
		{name: "not its phase", task: task(pending), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1)}, next: step.ErrDone, want: "done"},
		{name: "nothing pending", task: task(isStarted), next: step.ErrDone, want: "done", parked: "false"},
		{
			name: "parked", task: task(isStarted), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1)}, next: step.ErrDone, want: "done", parked: "true",
			cond: "True ApprovalPending " + waits, message: waits,
		},
		{
			name: "the oldest of several, with its action", task: task(isStarted),
			pending: []v1alpha1.Approval{approvaltest.Asked("b", 9), approvaltest.Asked("a", 2, func(a *v1alpha1.Approval) { a.Spec.Action = "Drop it." })}, next: step.ErrDone, want: "done", parked: "true",
			cond: "True ApprovalPending " + waits + ": Drop it. (and 1 more)", message: waits + ": Drop it. (and 1 more)",
		},
		{
			name: "until the first expires", task: task(isStarted), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1, approvaltest.Expiring(time.Hour)), approvaltest.Asked("b", 2), approvaltest.Asked("c", 3, approvaltest.Expiring(time.Minute))},
			next: step.ErrDone, want: "wait 1m0s", parked: "true", cond: "True ApprovalPending " + waits + " (and 2 more)", message: waits + " (and 2 more)",
		},
		{
			name: "expired", task: task(waiting), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1, approvaltest.Expiring(0))}, next: step.ErrDone, want: "done", parked: "false",
			events: []string{"ApprovalExpired a u there was no decision until 2026-01-01T12:00:00Z"}, cond: "False ApprovalDecided no approval is pending",
		},
		{
			name: "of an earlier attempt", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.Attempts = 2 }), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1), approvaltest.Asked("b", 2, approvaltest.OfAttempt(2))},
			next: step.ErrDone, want: "done", parked: "true", events: []string{"ApprovalCancelled a u attempt 1, which asked, is over"},
			cond: "True ApprovalPending waiting for approval b to call drop", message: "waiting for approval b to call drop",
		},
		{
			name: "without a binding", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.Attempts = 2 }), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1, func(a *v1alpha1.Approval) { a.Spec.Binding = nil })},
			next: step.ErrDone, want: "done", parked: "true", cond: "True ApprovalPending " + waits, message: waits,
		},
		{
			name: "its Tool has changed", task: task(waiting),
			pending: []v1alpha1.Approval{approvaltest.Asked("a", 1, approvaltest.OfTool("tool", 1)), approvaltest.Asked("b", 2, approvaltest.OfTool("tool", 2))},
			next:    step.ErrDone, want: "done", parked: "true", events: []string{`ApprovalCancelled a u Tool "drop" changed (from generation 1 to 2), and this run would call what it was before`},
			cond: "True ApprovalPending waiting for approval b to call drop", message: "waiting for approval b to call drop",
		},
		{name: "decided", task: task(waiting), next: step.ErrDone, want: "done", parked: "false", cond: "False ApprovalDecided no approval is pending"},
		{name: "another message stays", task: task(waiting, func(t *v1alpha1.Task) { t.Status.Message = "x" }), next: step.ErrDone, want: "done", parked: "false", cond: "False ApprovalDecided no approval is pending", message: "x"},
		{name: "not started yet", task: task(running), parkErr: executor.ErrNotFound, next: step.ErrDone, want: "done", parked: "false"},
		{name: "cannot be parked", task: task(isStarted), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1)}, parkErr: errBoom, want: "park: boom", parked: "true"},
		{
			name: "the run fails", task: task(isStarted), pending: []v1alpha1.Approval{approvaltest.Asked("a", 1, approvaltest.Expiring(time.Hour))}, next: errBoom, want: "boom", parked: "true",
			cond: "True ApprovalPending " + waits, message: waits,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var told string
			var events []string
			s := parked{
				now: noon,
				park: func(_ context.Context, r executor.Ref, parked bool) error {
					told = map[bool]string{true: "true", false: "false"}[parked]
					if r != runRef(tc.task) {
						t.Errorf("parked %v", r)
					}
					return tc.parkErr
				},
				pending: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Approval, error) { return tc.pending, nil },
				tool: func(context.Context, *v1alpha1.Approval) (*v1alpha1.Tool, error) {
					return approvaltest.Tool("tool", 2), nil
				},
				append: func(_ context.Context, _ *v1alpha1.Task, all ...v1alpha1.ExecutionEvent) error {
					events = append(events, settled(t, all)...)
					return nil
				},
				next: func(context.Context, *v1alpha1.Task) error { return tc.next },
			}
			outcomeIs(t, s.do(t.Context(), tc.task), tc.want)
			if told != tc.parked {
				t.Errorf("the executor was told %q", told)
			}
			if d := cmp.Diff(tc.events, events); d != "" {
				t.Error(d)
			}
			cond := ""
			if c := meta.FindStatusCondition(tc.task.Status.Conditions, v1alpha1.ConditionWaitingForApproval); c != nil {
				cond = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			if cond != tc.cond || tc.task.Status.Message != tc.message {
				t.Errorf("condition %q, message %q", cond, tc.task.Status.Message)
			}
		})
	}
}

// TestClockStopsWithChildren: the timeout of a task does not run while all that it delegated, and that has not ended, waits for
// people, however deep they are asked. The task itself is not parked.
func TestClockStopsWithChildren(t *testing.T) {
	delegated := func(change ...func(*v1alpha1.Task)) v1alpha1.Task {
		c := task(append([]func(*v1alpha1.Task){isStarted}, change...)...)
		c.Status.Delegation = &v1alpha1.TaskDelegation{}
		return *c
	}
	above := func(t *v1alpha1.Task) { tellChildrenWait(t, true) }
	ended := func(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskSucceeded }
	detached := func(t *v1alpha1.Task) { t.Status.Delegation.Detached = true }
	left := delegated()
	detached(&left)
	parent := task(isStarted)
	parent.Status.HasChildren = true
	for _, c := range []struct {
		name     string
		children []v1alpha1.Task
		stopped  bool
	}{
		{"none", nil, false},
		{"one works", []v1alpha1.Task{delegated(waiting), delegated()}, false},
		{"all wait", []v1alpha1.Task{delegated(waiting), delegated(waiting)}, true},
		{"one goes on", []v1alpha1.Task{delegated(), delegated(waiting)}, false},
		{"what has ended does not count", []v1alpha1.Task{delegated(ended), delegated(waiting)}, true},
		{"nor what was detached", []v1alpha1.Task{left, delegated(waiting)}, true},
		{"below a child", []v1alpha1.Task{delegated(above)}, true},
		{"all have ended", []v1alpha1.Task{delegated(ended)}, false},
	} {
		stopped := false
		s := parked{
			now:      noon,
			park:     func(_ context.Context, _ executor.Ref, parked bool) error { stopped = parked; return nil },
			pending:  func(context.Context, *v1alpha1.Task) ([]v1alpha1.Approval, error) { return nil, nil },
			children: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return c.children, nil },
			next:     func(context.Context, *v1alpha1.Task) error { return step.ErrDone },
		}
		outcomeIs(t, s.do(t.Context(), parent), "done")
		if stopped != c.stopped || saysChildrenWait(parent) != c.stopped || isParked(parent) {
			t.Errorf("%s: the clock is stopped: %v, said: %v", c.name, stopped, saysChildrenWait(parent))
		}
	}
}

// TestChangedTool: a change of a Tool's spec wakes the tasks that wait for an approval of a call of it, and no other event does. What
// the cache has of a Tool is not believed where it is older than the approval.
func TestChangedTool(t *testing.T) {
	approvals := []client.Object{}
	for id, change := range map[string]func(*v1alpha1.Approval){
		"of-the-tool": func(*v1alpha1.Approval) {}, "of-another": func(a *v1alpha1.Approval) { a.Spec.TargetTool = "keep" },
		"elsewhere": func(a *v1alpha1.Approval) { a.Spec.Binding.Tool.Namespace = "other" }, "built-in": func(a *v1alpha1.Approval) { a.Spec.Binding.Tool = nil },
	} {
		approvals = append(approvals, new(approvaltest.Asked(id, 1, approvaltest.OfTool("tool", 2), func(a *v1alpha1.Approval) { a.Spec.TaskName = "task-" + id }, change)))
	}
	older, changed := approvaltest.Tool("tool", 1), approvaltest.Tool("tool", 2)
	cached := testClient(t, append(approvals, older)...)
	w := approvalAPI{&wire{Client: cached, live: testClient(t, changed)}}
	var woken []string
	for _, r := range w.waitForTool(t.Context(), changed) {
		woken = append(woken, r.String())
	}
	if d := cmp.Diff([]string{"ns/task-of-the-tool"}, woken); d != "" {
		t.Error(d)
	}
	for want, e := range map[string]ctrlevent.UpdateEvent{
		"a probe":      {ObjectOld: older, ObjectNew: older},
		"it changed":   {ObjectOld: older, ObjectNew: changed},
		"it was gone":  {ObjectOld: older, ObjectNew: approvaltest.Tool("other", 1)},
		"its metadata": {ObjectOld: changed, ObjectNew: changed},
	} {
		if changedTool().Update(e) != strings.HasPrefix(want, "it ") {
			t.Error(want)
		}
	}
	if changedTool().Create(ctrlevent.CreateEvent{Object: changed}) || !changedTool().Delete(ctrlevent.DeleteEvent{Object: changed}) {
		t.Error("a Tool that is new, or deleted")
	}
	asked := approvaltest.Asked("a", 1, approvaltest.OfTool("tool", 2))
	if now, err := w.tool(t.Context(), &asked); err != nil || now.Generation != 2 {
		t.Errorf("%+v, %v", now, err)
	}
	asked.Spec.TargetTool = "gone"
	if now, err := w.tool(t.Context(), &asked); err != nil || now != nil {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestExpiryWhileLooking: an approval that expires during the reconcile is checked again.
func TestExpiryWhileLooking(t *testing.T) {
	looks := 0
	s := parked{
		now: func() time.Time {
			looks++
			return noon().Add(time.Duration(looks) * time.Second)
		},
		park: func(context.Context, executor.Ref, bool) error { return nil },
		pending: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Approval, error) {
			return []v1alpha1.Approval{approvaltest.Asked("a", 1, approvaltest.Expiring(2*time.Second))}, nil
		},
		next: func(context.Context, *v1alpha1.Task) error { return step.ErrDone },
	}
	outcomeIs(t, s.do(t.Context(), task(isStarted)), "wait 1ms")
}

// settled formats events of approvals, and checks that the API accepts them.
func settled(t *testing.T, events []v1alpha1.ExecutionEvent) []string {
	t.Helper()
	var out []string
	for i := range events {
		e := &events[i]
		if err := law.Validate(e); err != nil || e.DedupKey == "" {
			t.Errorf("%v %v", e, err)
		}
		var c struct {
			TaskUID types.UID `json:"taskUID"`
			Reason  string    `json:"reason"`
		}
		if err := json.Unmarshal(e.Content.Raw, &c); err != nil {
			t.Error(err)
		}
		out = append(out, strings.Join([]string{string(e.Type), e.ToolCallID, string(c.TaskUID), c.Reason}, " "))
	}
	return out
}

// TestRetryCancelsApprovals: in the commit that ends the attempt.
func TestRetryCancelsApprovals(t *testing.T) {
	l := &eventLog{}
	s := run{
		now: noon, append: l.append, end: l.finish, executor: &runs{state: executor.State{ID: "job", Phase: executor.Lost}},
		unsettled: func(_ context.Context, tk *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error) {
			return approval.End([]v1alpha1.Approval{approvaltest.Asked("a", 1)}, tk.UID, why), nil
		},
	}
	tk := task(waiting, retries(1))
	outcomeIs(t, s.do(t.Context(), tk), "done")
	if d := cmp.Diff([]string{"ApprovalCancelled", "TaskPhaseChanged"}, l.events); d != "" {
		t.Error(d)
	}
	if isParked(tk) || tk.Status.Phase != v1alpha1.TaskPending {
		t.Errorf("status = %+v", tk.Status)
	}
}

func TestParkedTakesNoSlot(t *testing.T) {
	if !usesSlot(task(isStarted)) || usesSlot(task(waiting)) {
		t.Error("a parked task takes a slot, or a running one takes none")
	}
}

func TestTaskOfApproval(t *testing.T) {
	a := approvaltest.Asked("a", 1)
	if got := waitingTask(t.Context(), &a); len(got) != 1 || got[0] != (reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "t"}}) {
		t.Errorf("wakes %v", got)
	}
	if got := taskOfApproval(&a); len(got) != 1 || got[0] != "u" {
		t.Errorf("indexed as %v", got)
	}
}

// TestTokenOfRunThatMayPark outlives the timeout, which does not count while it is parked.
func TestTokenOfRunThatMayPark(t *testing.T) {
	for mayPark, want := range map[bool]time.Duration{false: time.Minute, true: 0} {
		l := &eventLog{}
		asked := time.Duration(-1)
		s := run{
			now: noon, append: l.append, executor: &runs{err: executor.ErrNotFound},
			resolve: func(context.Context, *v1alpha1.Task) (*resolved, error) { return &resolved{mayPark: mayPark}, nil },
			account: func(context.Context, *v1alpha1.Task) error { return nil },
			token: func(_ context.Context, _ *v1alpha1.Task, life time.Duration) (string, error) {
				asked = life
				return "token", nil
			},
		}
		tk := task(running, func(t *v1alpha1.Task) { t.Spec.Timeout = v1alpha1.DurationOf(time.Minute) })
		outcomeIs(t, s.do(t.Context(), tk), "done")
		if asked != want {
			t.Errorf("may park %t: token for %s", mayPark, asked)
		}
	}
}
