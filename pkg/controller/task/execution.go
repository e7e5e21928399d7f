// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// maxExecutionMessage is how long status.execution.message may be, in bytes.
const maxExecutionMessage = 1024

// execution keeps status.execution of tasks in a RuntimePool in step with the rest of the status, which decides it. So it is written
// with every decision, and cannot differ from what was decided. The status of other tasks stays as it is.
type execution struct {
	now func() time.Time
	// pods is set if a run is a Pod, which begins some time after it was created.
	pods bool
}

// after returns the step, after which status.execution is right.
func (x execution) after(s step.Step[*v1alpha1.Task]) step.Step[*v1alpha1.Task] {
	return step.Step[*v1alpha1.Task]{Name: s.Name, Do: func(ctx context.Context, t *v1alpha1.Task) error {
		err := s.Do(ctx, t)
		x.follow(t)
		return err
	}}
}

func (x execution) follow(t *v1alpha1.Task) {
	e := t.Status.Execution
	if e == nil || e.RuntimePoolName == "" {
		return
	}
	next := x.of(t)
	if next.State != e.State {
		next.LastTransitionTime = &metav1.Time{Time: x.now().Truncate(time.Second)}
	}
	if !equality.Semantic.DeepEqual(e, next) {
		t.Status.Execution = next
	}
}

// of returns the execution as the status of the task implies it.
func (x execution) of(t *v1alpha1.Task) *v1alpha1.TaskExecutionStatus {
	e := t.Status.Execution.DeepCopy()
	e.Outcome, e.Reason, e.Message = "", "", clip.Marked(t.Status.Message, maxExecutionMessage)
	e.Attempt = t.Status.Attempts
	switch {
	case t.Status.Phase.Terminal():
		x.ended(t, e)
	case t.Status.Phase == v1alpha1.TaskFinalizing:
		e.State = v1alpha1.ExecutionSettling
		if o := t.Status.ExecutionOutcome; o != nil {
			e.Outcome = string(o.Phase)
		}
	case t.Status.Phase == v1alpha1.TaskRunning:
		x.running(t, e)
	default:
		e.State, e.Attempt = v1alpha1.ExecutionQueued, t.Status.Attempts+1
		if c := waitingCondition(t); c != nil {
			e.Reason, e.Message = c.Reason, clip.Marked(c.Message, maxExecutionMessage)
		}
	}
	return e
}

func (x execution) running(t *v1alpha1.Task, e *v1alpha1.TaskExecutionStatus) {
	waits := waitingCondition(t)
	switch {
	case !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated):
		e.State = v1alpha1.ExecutionReserved
	case waits != nil:
		e.State, e.Reason, e.Message = v1alpha1.ExecutionSessionStarting, waits.Reason, clip.Marked(waits.Message, maxExecutionMessage)
	case x.pods && t.Status.PodUID == "":
		e.State = v1alpha1.ExecutionSessionStarting
	default:
		e.State = v1alpha1.ExecutionRunning
		if isParked(t) {
			e.Reason = v1alpha1.ReasonApprovalPending
		}
	}
}

// ended says how the attempt ended. Of a run that is gone without a report nobody knows that.
func (x execution) ended(t *v1alpha1.Task, e *v1alpha1.TaskExecutionStatus) {
	e.Outcome = string(t.Status.Phase)
	if o := t.Status.ExecutionOutcome; o != nil {
		e.Outcome = cmp.Or(string(o.Phase), e.Outcome)
	}
	switch t.Status.Phase {
	case v1alpha1.TaskSucceeded:
		e.State = v1alpha1.ExecutionSucceeded
	case v1alpha1.TaskCancelled:
		e.State = v1alpha1.ExecutionCancelled
	default:
		e.State = v1alpha1.ExecutionFailed
		if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
			e.Reason = c.Reason
		}
	}
	switch e.Reason {
	case v1alpha1.ReasonWorkerLost, v1alpha1.ReasonNodeLost:
		e.State, e.Outcome = v1alpha1.ExecutionOutcomeUnknown, ""
	case v1alpha1.ReasonPublicationOutcomeUnknown:
		e.State = v1alpha1.ExecutionOutcomeUnknown
	}
}
