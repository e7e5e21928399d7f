// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// graceWait is the interval at which a new task checks again for an object that it refers to and that does not
// exist yet.
const graceWait = time.Second

// admit decides whether a pending task may run, and records the attempt that the step run will
// start.
type admit struct {
	append  appendFunc
	now     func() time.Time
	newID   func() types.UID
	grace   time.Duration
	end     endFunc
	resolve func(context.Context, *v1alpha1.Task) (*resolved, error)
	// lockSession takes the task's session; it returns a queued error if another task holds it.
	lockSession func(context.Context, *v1alpha1.Task) error
	// takePlace takes a place in the RuntimePool of the task's coding agent, if it has one, or returns a queued error while the pool is
	// full. leavePlace gives it back.
	takePlace  func(context.Context, *v1alpha1.Task, v1alpha1.AgentRuntimeType) error
	leavePlace func(context.Context, *v1alpha1.Task) error
	// takeSlot takes a slot for the task, or returns a queued error while too many tasks run.
	takeSlot func(context.Context, *v1alpha1.Task) error
	// leaveSlot is called instead if the task cannot run now, so that it does not block others.
	leaveSlot func(context.Context, *v1alpha1.Task) error
	// checkChild applies the rules of delegation to a delegated task, and returns how many siblings may run at once.
	checkChild func(context.Context, *v1alpha1.Task) (int, error)
	// takeChild takes a slot among the siblings of a delegated task, or returns a queued error while too many run, and
	// leaveChild gives it back.
	takeChild  func(ctx context.Context, t *v1alpha1.Task, limit int) error
	leaveChild func(context.Context, *v1alpha1.Task) error
	origin     origin
	prior      prior
	// credentials records which credentials the publication of what the attempt changes may use.
	credentials func(context.Context, *v1alpha1.Task) error
	// warn writes a warning about the task for people.
	warn func(ctx context.Context, t *v1alpha1.Task, reason, message string)
}

func (s admit) do(ctx context.Context, t *v1alpha1.Task) error {
	switch t.Status.Phase {
	case v1alpha1.TaskPending:
		return s.decide(ctx, t)
	case "":
	default:
		return nil
	}
	t.Status.Phase = v1alpha1.TaskPending
	result := s.decide(ctx, t)
	if t.Status.Phase != v1alpha1.TaskPending {
		return result // the first event is stored with those of the attempt or of the end
	}
	if err := s.append(ctx, t, createdEvent(t)); err != nil {
		t.Status.Phase = ""
		return err
	}
	return result
}

// decide assigns an attempt to a pending task, or returns what it waits for.
func (s admit) decide(ctx context.Context, t *v1alpha1.Task) error {
	res, err := s.mayRun(ctx, t)
	if err == nil {
		err = s.takeRoom(ctx, t, res.runtime)
	} else if err := errors.Join(s.leaveSlot(ctx, t), s.leavePlace(ctx, t), s.leaveUnused(ctx, t, err)); err != nil {
		return err
	}
	if err == nil {
		err = s.origin.freeze(ctx, t)
	}
	if err == nil {
		err = s.credentials(ctx, t)
	}
	if err == nil {
		s.assign(t, res)
		return step.ErrDone // the next reconcile starts it, when this is stored
	}
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		return s.refuse(ctx, t, refused)
	}
	w, ok := errors.AsType[queued](err)
	if ok && waitsFor(t, w.reason, w.Reason) && w.reason == v1alpha1.ReasonNamespaceTaskLimitReached {
		s.warn(ctx, t, w.reason, w.Reason)
	}
	return err
}

// takeRoom takes a place in a pool, if the task needs one, and then a slot. A task that waits for its slot keeps its place.
func (s admit) takeRoom(ctx context.Context, t *v1alpha1.Task, kind v1alpha1.AgentRuntimeType) error {
	if err := s.takePlace(ctx, t, kind); err != nil {
		return cmp.Or(s.leaveSlot(ctx, t), err)
	}
	return s.takeSlot(ctx, t)
}

// mayRun resolves what the task runs with, once its start time and its turn in its session have come.
func (s admit) mayRun(ctx context.Context, t *v1alpha1.Task) (*resolved, error) {
	if at := t.Status.NextAttemptTime; at != nil {
		if wait := at.Sub(s.now()); wait > 0 {
			return nil, step.Wait{After: wait, Reason: "the next attempt is not due yet"}
		}
	}
	if meta.IsStatusConditionFalse(t.Status.Conditions, v1alpha1.ConditionRequesterVerified) {
		return nil, refusal.New(v1alpha1.ReasonRequesterUnverified, "who asked for the task cannot be verified; create it again")
	}
	if err := awaitToken(t, s.now); err != nil {
		return nil, err
	}
	if err := s.prior.begin(ctx, t); err != nil {
		return nil, err
	}
	res, err := s.resolve(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := s.lockSession(ctx, t); err != nil || !belongs(t) {
		return res, err
	}
	siblings, err := s.checkChild(ctx, t)
	if err != nil {
		return nil, err
	}
	return res, s.takeChild(ctx, t, siblings)
}

// leaveUnused gives back the slot among the siblings, unless the task waits for one.
func (s admit) leaveUnused(ctx context.Context, t *v1alpha1.Task, why error) error {
	w, ok := errors.AsType[queued](why)
	if !belongs(t) || ok && w.reason == v1alpha1.ReasonChildLimitReached {
		return nil
	}
	return s.leaveChild(ctx, t)
}

// refuse fails the task, unless what is missing may still be created.
func (s admit) refuse(ctx context.Context, t *v1alpha1.Task, r *refusal.Error) error {
	if r.Missing && s.now().Sub(t.CreationTimestamp.Time) < s.grace {
		t.Status.Message = r.Message
		return step.Wait{After: graceWait, Reason: r.Message}
	}
	phase := v1alpha1.TaskFailed
	if r.Cancelled {
		phase = v1alpha1.TaskCancelled
	}
	if err := s.end(ctx, t, outcome{phase: phase, reason: r.Reason, message: r.Message}); err != nil {
		return err
	}
	return step.ErrDone
}

// assign records the next attempt.
func (s admit) assign(t *v1alpha1.Task, res *resolved) {
	waitsNoMore(t, "an attempt is started")
	st := &t.Status
	st.Phase = v1alpha1.TaskRunning
	st.Message = ""
	st.Attempts++
	st.JobName = runRef(t).JobName()
	st.JobUID = s.newID()
	st.PodName, st.PodUID = "", ""
	st.NextAttemptTime = nil
	if st.StartTime == nil {
		st.StartTime = &metav1.Time{Time: s.now()}
	}
	if res.autonomous {
		begunIteration(t)
	}
	assignRemote(t, res.remote)
	st.AgentName, st.Provider, st.Model = res.agentName, res.providerName, res.model
	st.ConnectionBindings = res.bindings
	// Removed first, so that the time of the condition is the time of this attempt.
	meta.RemoveStatusCondition(&st.Conditions, v1alpha1.ConditionJobCreated)
	meta.SetStatusCondition(&st.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonJobStarting,
		Message: fmt.Sprintf("attempt %d is being started", st.Attempts), ObservedGeneration: t.Generation,
		LastTransitionTime: metav1.NewTime(s.now()),
	})
}
