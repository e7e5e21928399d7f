// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestNews(t *testing.T) {
	running := func(change ...func(*v1alpha1.TaskStatus)) *v1alpha1.Task {
		t := &v1alpha1.Task{Status: v1alpha1.TaskStatus{Phase: v1alpha1.TaskRunning, Message: "why"}}
		for _, f := range change {
			f(&t.Status)
		}
		return t
	}
	with := func(kind, reason, message string) func(*v1alpha1.TaskStatus) {
		return func(s *v1alpha1.TaskStatus) {
			meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
	}
	phase := func(p v1alpha1.TaskPhase) func(*v1alpha1.TaskStatus) {
		return func(s *v1alpha1.TaskStatus) { s.Phase = p }
	}
	asks := running(with(v1alpha1.ConditionWaitingForApproval, "ApprovalPending", "a person decides"))
	failed := running(phase(v1alpha1.TaskFailed), with(v1alpha1.ConditionFailed, v1alpha1.ReasonProviderInvalid, "no"))
	retries := running(phase(v1alpha1.TaskPending), func(s *v1alpha1.TaskStatus) { s.NextAttemptTime = &metav1.Time{} })
	for name, tc := range map[string]struct {
		was, now *v1alpha1.Task
		want     string
	}{
		"nothing new":         {running(), running(), ""},
		"failure":             {running(), failed, "Warning ProviderInvalid why"},
		"still failed":        {failed, failed, ""},
		"retry":               {running(), retries, "Warning RetryScheduled why"},
		"next iteration":      {running(), running(phase(v1alpha1.TaskPending)), ""},
		"approval":            {running(), asks, "Normal ApprovalRequested a person decides"},
		"approval still open": {asks, asks, ""},
		"another approval":    {asks, running(with(v1alpha1.ConditionWaitingForApproval, "ApprovalPending", "a person decides again")), "Normal ApprovalDecided decided: a person decides; Normal ApprovalRequested a person decides again"},
		"one more approval":   {asks, running(with(v1alpha1.ConditionWaitingForApproval, "ApprovalPending", "a person decides (and 1 more)")), "Normal ApprovalRequested a person decides (and 1 more)"},
		"decided":             {asks, running(), "Normal ApprovalDecided decided: a person decides"},
		"ended while it asks": {asks, running(phase(v1alpha1.TaskCancelled)), ""},
		"success":             {running(), running(phase(v1alpha1.TaskSucceeded)), ""},
	} {
		var all []string
		for _, n := range newsOf(tc.was, tc.now) {
			all = append(all, n.typ+" "+n.reason+" "+n.message)
		}
		if got := strings.Join(all, "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
