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

// TestExecution: status.execution of a task with a pool says what the rest of its status implies, and when that changed.
func TestExecution(t *testing.T) {
	early := &metav1.Time{Time: noon().Add(-time.Hour)}
	inPool := func(t *v1alpha1.Task) {
		t.Status.Execution = &v1alpha1.TaskExecutionStatus{State: v1alpha1.ExecutionRunning, RuntimePoolName: "codex-1", RuntimePoolUID: "p", LastTransitionTime: early, PublicationCredentialResourceVersion: "7"}
	}
	waits := func(reason string) func(*v1alpha1.Task) {
		return func(t *v1alpha1.Task) { waitsFor(t, reason, "why it waits") }
	}
	has := func(typ string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Task) {
		return func(t *v1alpha1.Task) { setCondition(&t.Status, 1, typ, status, reason, "") }
	}
	begun := has(v1alpha1.ConditionJobCreated, metav1.ConditionTrue, v1alpha1.ReasonJobCreated)
	phase := func(p v1alpha1.TaskPhase) func(*v1alpha1.Task) { return func(t *v1alpha1.Task) { t.Status.Phase = p } }
	says := func(text string) func(*v1alpha1.Task) { return func(t *v1alpha1.Task) { t.Status.Message = text } }
	earned := func(t *v1alpha1.Task) {
		t.Status.ExecutionOutcome = &v1alpha1.TaskExecutionOutcome{Phase: v1alpha1.TaskSucceeded}
	}
	failed := func(reason string) func(*v1alpha1.Task) {
		return func(t *v1alpha1.Task) {
			phase(v1alpha1.TaskFailed)(t)
			has(v1alpha1.ConditionFailed, metav1.ConditionTrue, reason)(t)
		}
	}
	type change = func(*v1alpha1.Task)
	for name, tc := range map[string]struct {
		task []change
		pods bool
		want v1alpha1.TaskExecutionStatus
	}{
		"waits":                   {[]change{pending, waits("RuntimePoolFull")}, false, v1alpha1.TaskExecutionStatus{State: "Queued", Reason: "RuntimePoolFull", Message: "why it waits", Attempt: 1}},
		"is recorded":             {[]change{running}, false, v1alpha1.TaskExecutionStatus{State: "Reserved", Attempt: 1}},
		"runs":                    {[]change{running, begun}, false, v1alpha1.TaskExecutionStatus{State: "Running", Attempt: 1}},
		"has no Pod yet":          {[]change{running, begun}, true, v1alpha1.TaskExecutionStatus{State: "SessionStarting", Attempt: 1}},
		"has a Pod":               {[]change{running, begun, func(t *v1alpha1.Task) { t.Status.PodUID = "pod" }}, true, v1alpha1.TaskExecutionStatus{State: "Running", Attempt: 1}},
		"waits for a node":        {[]change{running, begun, waits("Unschedulable")}, true, v1alpha1.TaskExecutionStatus{State: "SessionStarting", Reason: "Unschedulable", Message: "why it waits", Attempt: 1}},
		"asks a person":           {[]change{running, begun, has(v1alpha1.ConditionWaitingForApproval, metav1.ConditionTrue, "ApprovalPending")}, false, v1alpha1.TaskExecutionStatus{State: "Running", Reason: "ApprovalPending", Attempt: 1}},
		"is delivered":            {[]change{running, begun, phase(v1alpha1.TaskFinalizing), earned}, false, v1alpha1.TaskExecutionStatus{State: "Settling", Outcome: "Succeeded", Attempt: 1}},
		"succeeded":               {[]change{running, phase(v1alpha1.TaskSucceeded)}, false, v1alpha1.TaskExecutionStatus{State: "Succeeded", Outcome: "Succeeded", Attempt: 1}},
		"failed":                  {[]change{running, failed("AgentFailed")}, false, v1alpha1.TaskExecutionStatus{State: "Failed", Outcome: "Failed", Reason: "AgentFailed", Attempt: 1}},
		"was not delivered":       {[]change{running, earned, failed("DeliveryConflict")}, false, v1alpha1.TaskExecutionStatus{State: "Failed", Outcome: "Succeeded", Reason: "DeliveryConflict", Attempt: 1}},
		"was cancelled":           {[]change{running, phase(v1alpha1.TaskCancelled)}, false, v1alpha1.TaskExecutionStatus{State: "Cancelled", Outcome: "Cancelled", Attempt: 1}},
		"is gone":                 {[]change{running, failed("WorkerLost")}, false, v1alpha1.TaskExecutionStatus{State: "OutcomeUnknown", Reason: "WorkerLost", Attempt: 1}},
		"may have been delivered": {[]change{running, earned, failed("PublicationOutcomeUnknown")}, false, v1alpha1.TaskExecutionStatus{State: "OutcomeUnknown", Outcome: "Succeeded", Reason: "PublicationOutcomeUnknown", Attempt: 1}},
		"has much to say":         {[]change{running, says(strings.Repeat("x", 2000))}, false, v1alpha1.TaskExecutionStatus{State: "Reserved", Attempt: 1, Message: "cut"}},
		"waits for another try":   {[]change{running, pending, says("attempt 1 failed")}, false, v1alpha1.TaskExecutionStatus{State: "Queued", Message: "attempt 1 failed", Attempt: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			k := task(append([]change{inPool}, tc.task...)...)
			execution{now: noon, pods: tc.pods}.follow(k)
			tc.want.RuntimePoolName, tc.want.RuntimePoolUID, tc.want.PublicationCredentialResourceVersion = "codex-1", "p", "7"
			tc.want.LastTransitionTime = &metav1.Time{Time: noon()}
			if tc.want.State == v1alpha1.ExecutionRunning {
				tc.want.LastTransitionTime = early
			}
			if tc.want.Message == "cut" && len(k.Status.Execution.Message) <= maxExecutionMessage && len(k.Status.Execution.Message) > maxExecutionMessage/2 {
				tc.want.Message = k.Status.Execution.Message
			}
			if d := cmp.Diff(&tc.want, k.Status.Execution); d != "" {
				t.Error(d)
			}
			stored := k.Status.Execution
			if (execution{now: time.Now, pods: tc.pods}).follow(k); k.Status.Execution != stored {
				t.Error("it changes again")
			}
		})
	}
	other := task(running, func(t *v1alpha1.Task) { t.Status.Execution = &v1alpha1.TaskExecutionStatus{Attempt: 4} })
	if (execution{now: noon}).follow(other); other.Status.Execution.State != "" || other.Status.Execution.Attempt != 4 {
		t.Errorf("without a pool: %+v", other.Status.Execution)
	}
}
