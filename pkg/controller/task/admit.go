// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// Waiting times of a pending task.
const (
	limitWait   = 10 * time.Second
	sessionWait = 5 * time.Second
	graceWait   = time.Second
)

// Reasons of the condition JobCreated.
const (
	jobStarting = "Starting"
	jobCreated  = "Created"
	jobRetrying = "Retrying"
	jobEnded    = "Ended"
)

// admit decides whether a pending task may run, and writes down the attempt
// that the step run will start.
type admit struct {
	now     func() time.Time
	newID   func() types.UID
	grace   time.Duration
	end     endFunc
	resolve func(context.Context, *v1alpha1.Task) (*resolved, error)
	// lockSession takes the task's session; a step.Wait tells that another task holds it.
	lockSession func(context.Context, *v1alpha1.Task) error
	// takeSlot lets the task run, or gives a step.Wait while too many do.
	takeSlot func(context.Context, *v1alpha1.Task) error
}

func (s admit) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase != v1alpha1.TaskPending {
		return nil
	}
	if at := t.Status.NextAttemptTime; at != nil {
		if wait := at.Sub(s.now()); wait > 0 {
			return step.Wait{After: wait, Reason: "the next attempt is not due yet"}
		}
	}
	res, err := s.resolve(ctx, t)
	if err == nil {
		err = s.lockSession(ctx, t)
	}
	if refused, ok := errors.AsType[*refusal](err); ok {
		return s.refuse(ctx, t, refused)
	}
	if err == nil {
		err = s.takeSlot(ctx, t)
	}
	if err != nil {
		if w, ok := errors.AsType[step.Wait](err); ok {
			t.Status.Message = w.Reason
		}
		return err
	}
	s.assign(t, res)
	return step.ErrDone // the next reconcile starts it, when this is stored
}

// refuse fails the task, unless what is missing may be on its way.
func (s admit) refuse(ctx context.Context, t *v1alpha1.Task, r *refusal) error {
	if r.missing && s.now().Sub(t.CreationTimestamp.Time) < s.grace {
		t.Status.Message = r.message
		return step.Wait{After: graceWait, Reason: r.message}
	}
	if err := s.end(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: r.reason, message: r.message}); err != nil {
		return err
	}
	return step.ErrDone
}

// assign writes the next attempt down.
func (s admit) assign(t *v1alpha1.Task, res *resolved) {
	st := &t.Status
	st.Phase = v1alpha1.TaskRunning
	st.Message = ""
	st.Attempts++
	st.JobName = runRef(t).JobName()
	st.JobUID = s.newID()
	st.NextAttemptTime = nil
	if st.StartTime == nil {
		st.StartTime = &metav1.Time{Time: s.now()}
	}
	st.AgentName, st.Provider, st.Model = res.agentName, res.providerName, res.model
	// Removed first, so that the time of the condition is the time of this attempt.
	meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionJobCreated)
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionFalse, Reason: jobStarting,
		Message: messagef("attempt %d is being started", st.Attempts), ObservedGeneration: t.Generation,
		LastTransitionTime: metav1.NewTime(s.now()),
	})
}
