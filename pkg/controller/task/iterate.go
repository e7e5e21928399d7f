// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan"
)

// iterations decides what follows an iteration of an autonomous task whose work is done: the end of the task, another
// iteration, or nothing while the task is suspended.
//
// Each iteration is an attempt of its own, so the rules for attempts hold: it is recorded before it is started, and
// started once. The end of an iteration is one status patch, which counts the iteration and makes the task Pending. A
// crash before this patch repeats the decision, and it is the same one, because the plan that it depends on changes
// only while a run is alive. Iterations do not count against the retry policy; only attempts that failed do.
//
// An iteration begins with an empty conversation. Its prompt has the plan and what people decided (package runner/ai).
type iterations struct {
	// plan reads the plan of the task from the server; nil if there is none.
	plan func(context.Context, *v1alpha1.Task) (*v1alpha1.TaskPlan, error)
	// agent reads the Agent of the task; nil if it is gone.
	agent     func(context.Context, *v1alpha1.Task) (*v1alpha1.Agent, error)
	append    appendFunc
	unsettled func(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error)
	end       endFunc
}

// next is called when the run of the current iteration has succeeded; o is how it ended.
func (s iterations) next(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	done := t.Status.Iteration + 1
	p, err := s.plan(ctx, t)
	if err != nil {
		return err
	}
	a, err := s.agent(ctx, t)
	if err != nil {
		return err
	}
	switch {
	case p != nil && p.GoalComplete:
		o.message = fmt.Sprintf("goal complete after %d iterations", done)
	case a == nil: // the next attempt is refused for that
		return s.advance(ctx, t)
	case !plan.Autonomous(t, a):
		o.message = fmt.Sprintf("the agent does not work in iterations any more; %d were done: %s", done, o.message)
	case a.Spec.Coordination.MaxIterations > 0 && done >= a.Spec.Coordination.MaxIterations:
		o.message = fmt.Sprintf("reached max iterations (%d)", a.Spec.Coordination.MaxIterations)
	case t.Spec.Suspend:
		suspend(t)
		return step.ErrDone // a change of spec.suspend will wake the task
	default:
		return s.advance(ctx, t)
	}
	if err := s.end(ctx, t, o); err != nil {
		return err
	}
	return step.ErrDone
}

// advance makes the task Pending for its next iteration.
func (s iterations) advance(ctx context.Context, t *v1alpha1.Task) error {
	message := fmt.Sprintf("iteration %d is over", t.Status.Iteration)
	events, err := s.unsettled(ctx, t, message)
	if err != nil {
		return err
	}
	if err := s.append(ctx, t, append(events, phaseChanged(t, v1alpha1.TaskRunning, v1alpha1.TaskPending, message))...); err != nil {
		return err
	}
	notParked(t, "the iteration is over")
	waitsNoMore(t, "the iteration is over")
	st := &t.Status
	st.Phase, st.Message = v1alpha1.TaskPending, message+"; the next one follows"
	st.Iteration++
	st.JobName, st.JobUID, st.PodName, st.PodUID = "", "", "", ""
	setCondition(st, t.Generation, v1alpha1.ConditionIterating, metav1.ConditionTrue, v1alpha1.ReasonIterating, fmt.Sprintf("iteration %d is next", st.Iteration))
	setCondition(st, t.Generation, v1alpha1.ConditionJobCreated, metav1.ConditionFalse, v1alpha1.ReasonIterationOver, message)
	return step.ErrDone
}

// iterates reports whether the current attempt of the task is an iteration of an autonomous one.
func iterates(t *v1alpha1.Task) bool {
	return meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionIterating) != nil
}

// begunIteration records that the attempt is an iteration.
func begunIteration(t *v1alpha1.Task) {
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionIterating, metav1.ConditionTrue, v1alpha1.ReasonIterating, fmt.Sprintf("iteration %d", t.Status.Iteration))
}

// suspend records that the task waits between two iterations.
func suspend(t *v1alpha1.Task) {
	message := fmt.Sprintf("suspended: iteration %d is over, and no other begins while spec.suspend is set", t.Status.Iteration)
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionIterating, metav1.ConditionFalse, v1alpha1.ReasonSuspended, message)
}

// isSuspended reports whether the task waits between two iterations. It then has no run and takes no slot.
func isSuspended(t *v1alpha1.Task) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionIterating)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonSuspended
}

// iteratesNoMore records the end of a task that worked in iterations.
func iteratesNoMore(t *v1alpha1.Task) {
	if iterates(t) {
		setCondition(&t.Status, t.Generation, v1alpha1.ConditionIterating, metav1.ConditionFalse, v1alpha1.ReasonJobEnded, "the task is over")
	}
}
