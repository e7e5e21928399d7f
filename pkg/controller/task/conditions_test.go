// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// conditionsOf are the conditions that describe the end, as "type=status(reason)".
func conditionsOf(t *v1alpha1.Task) []string {
	var list []string
	for _, c := range t.Status.Conditions {
		switch c.Type {
		case v1alpha1.ConditionComplete, v1alpha1.ConditionSucceeded, v1alpha1.ConditionFailed:
			list = append(list, c.Type+"="+string(c.Status)+"("+c.Reason+")")
		}
	}
	return list
}

func TestConditionsTellHowATaskEnded(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    outcome
		want string
	}{
		{"success", outcome{phase: v1alpha1.TaskSucceeded}, "Complete=True(TaskSucceeded) Succeeded=True(TaskSucceeded) Failed=False(TaskSucceeded)"},
		{"failure", outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonTimedOut}, "Complete=True(TaskFailed) Succeeded=False(TaskFailed) Failed=True(TimedOut)"},
		{"failure of unknown cause", outcome{phase: v1alpha1.TaskFailed}, "Complete=True(TaskFailed) Succeeded=False(TaskFailed) Failed=True(TaskFailed)"},
		{"failure with a word that is no reason", outcome{phase: v1alpha1.TaskFailed, reason: "out of luck"}, "Complete=True(TaskFailed) Succeeded=False(TaskFailed) Failed=True(TaskFailed)"},
		{"cancellation", outcome{phase: v1alpha1.TaskCancelled, reason: v1alpha1.ReasonDeleted}, "Complete=True(TaskCancelled) Succeeded=False(TaskCancelled) Failed=False(TaskCancelled)"},
	} {
		tk := task(isStarted)
		if got := conditionsOf(tk); got != nil {
			t.Errorf("%s: a running task has %v", tc.name, got)
		}
		setTerminal(&tk.Status, 1, tc.o, metav1.NewTime(noon()))
		if got := strings.Join(conditionsOf(tk), " "); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// TestConditionsAreAddedOnce: a task that ended before Succeeded and Failed existed gets them, from the moment of its end.
func TestConditionsAreAddedOnce(t *testing.T) {
	since := metav1.NewTime(noon().Add(-time.Hour))
	old := task(func(t *v1alpha1.Task) {
		t.Status.Phase = v1alpha1.TaskFailed
		t.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTaskFailed, Message: "no", LastTransitionTime: since, ObservedGeneration: 2,
		}}
	})
	outcomeIs(t, completed{}.do(t.Context(), old), "done")
	want := []metav1.Condition{
		{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTaskFailed, Message: "no", LastTransitionTime: since, ObservedGeneration: 2},
		{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTaskFailed, Message: "no", LastTransitionTime: since, ObservedGeneration: 2},
		{Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTaskFailed, Message: "no", LastTransitionTime: since, ObservedGeneration: 2},
	}
	if d := cmp.Diff(want, old.Status.Conditions); d != "" {
		t.Error(d)
	}
	outcomeIs(t, completed{}.do(t.Context(), old), "done")
	if d := cmp.Diff(want, old.Status.Conditions); d != "" {
		t.Errorf("a second reconcile changed them:\n%s", d)
	}
}

func TestTheStoredEventDecides(t *testing.T) {
	stored := terminalEvent(task(isStarted), outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonTimedOut, message: "task timed out"})
	for _, tc := range []struct {
		name string
		o    outcome
	}{
		{"after a crash", outcome{phase: v1alpha1.TaskFailed}},
		{"against another end", outcome{phase: v1alpha1.TaskSucceeded, message: "fine"}},
	} {
		if got := agreeing(tc.o, &stored); got != (outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonTimedOut, message: "task timed out"}) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}
