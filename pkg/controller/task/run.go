// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/plan/refusal"
)

// startPatience is how long the controller tries to start an attempt.
const startPatience = 2 * time.Minute

// deliveryRunTime is the run time for which the token of a delivery is made. Another delivery,
// with another token, may follow.
const deliveryRunTime = 15 * time.Minute

// run starts the attempt that admit recorded, and settles it when it is over.
type run struct {
	now      func() time.Time
	executor executor.Executor
	resolve  func(context.Context, *v1alpha1.Task) (*resolved, error)
	// account makes sure that the worker's account exists.
	account func(ctx context.Context, t *v1alpha1.Task) error
	// token makes the worker's token, for a run that takes at most the timeout; 0 means no limit.
	token  func(ctx context.Context, t *v1alpha1.Task, timeout time.Duration) (string, error)
	append appendFunc
	// skills counts those that attempts load.
	skills *skillMetrics
	// unsettled returns the events that end the attempt's approvals that are still pending.
	unsettled func(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error)
	end       endFunc
	// iterate decides what follows an iteration that succeeded.
	iterate func(ctx context.Context, t *v1alpha1.Task, o outcome) error
	// warn writes a warning about the task for people, and note writes news.
	warn, note func(ctx context.Context, t *v1alpha1.Task, reason, message string)
	// publish begins the publication of what a run changed.
	publish func(ctx context.Context, t *v1alpha1.Task, o outcome) error
	// settleChildren reports whether the task must wait for what it delegated before it ends; see offspring.
	settleChildren func(ctx context.Context, t *v1alpha1.Task, o outcome) (waits bool, err error)
}

func (s run) do(ctx context.Context, t *v1alpha1.Task) error {
	if t.Status.Phase != v1alpha1.TaskRunning {
		return nil
	}
	if isSuspended(t) {
		return s.iterate(ctx, t, outcome{phase: v1alpha1.TaskSucceeded})
	}
	created := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated)
	state, err := s.executor.State(ctx, runRef(t))
	switch {
	case errors.Is(err, executor.ErrNotFound) && !created:
		return s.start(ctx, t)
	case errors.Is(err, executor.ErrNotFound):
		return s.fail(ctx, t, outcome{reason: v1alpha1.ReasonWorkerLost, message: "the run is gone and left no report of its end" + whatIsMissing(err)})
	case err != nil:
		return fmt.Errorf("run: %w", err)
	case !created && s.executor.ByReference(): // somebody else may have created what was found
		return s.start(ctx, t)
	case !isRunOf(t, state):
		return s.fail(ctx, t, outcome{reason: v1alpha1.ReasonWorkerLost, message: "the run that was found is not the one that was started"})
	case !recordPod(t, state):
		return s.fail(ctx, t, outcome{reason: v1alpha1.ReasonWorkerLost, message: fmt.Sprintf("pod %s is gone; pod %s was not started for this run", t.Status.PodName, state.PodName)})
	case state.Undelivered:
		return s.deliver(ctx, t)
	case state.Phase != executor.Running:
		return s.settle(ctx, t, state)
	case !created: // started by an earlier reconcile that did not record it
		return s.started(ctx, t, state)
	}
	s.show(ctx, t, state.Waiting)
	return step.ErrDone // its end will wake the task
}

// show reports in the status what keeps the run from beginning. It writes again only when the
// reason changes, because some messages contain a running count.
func (s run) show(ctx context.Context, t *v1alpha1.Task, w executor.Waiting) {
	c := waitingCondition(t)
	switch {
	case w.Reason == "":
		waitsNoMore(t, "the run has begun")
	case c == nil || c.Reason != w.Reason:
		waitsFor(t, w.Reason, w.Message)
		s.warn(ctx, t, w.Reason, w.Message)
	}
}

// isRunOf reports whether the run that was found is the one that was recorded: by the id that
// was chosen for it, and by the executor's own identity when that is known. Others can read the
// id, so for a run that was started, the id alone is not enough if the executor has an identity
// of its own.
func isRunOf(t *v1alpha1.Task, state executor.State) bool {
	if state.UID != "" && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionJobCreated) {
		return t.Status.JobUID == state.UID
	}
	return string(t.Status.JobUID) == state.ID
}

// recordPod records the first Pod that the executor accepts for the attempt. It reports whether the Pod that is
// accepted now is the recorded one.
func recordPod(t *v1alpha1.Task, state executor.State) bool {
	st := &t.Status
	if state.PodUID != "" && st.PodUID == "" {
		st.PodName, st.PodUID = state.PodName, state.PodUID
	}
	return state.PodUID == "" || st.PodUID == state.PodUID
}

func whatIsMissing(err error) string {
	if m, ok := errors.AsType[*executor.MissingError](err); ok {
		return ": " + m.What
	}
	return ""
}

// start starts the attempt. It is repeated until it succeeds or startPatience is over; the
// executor starts the attempt only once.
func (s run) start(ctx context.Context, t *v1alpha1.Task) error {
	state, err := s.tryStart(ctx, t)
	if err == nil {
		recordPod(t, state)
		if err := s.started(ctx, t, state); !errors.Is(err, step.ErrDone) || state.Phase != executor.Exited && state.Phase != executor.Lost {
			return err
		}
		return s.settle(ctx, t, state)
	}
	if wait, ok := errors.AsType[step.Wait](err); ok {
		return wait
	}
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: refused.Reason, message: refused.Message})
	}
	if errors.Is(err, executor.ErrConflict) {
		return s.fail(ctx, t, outcome{reason: v1alpha1.ReasonWorkerLost, message: "the attempt was started as another run"})
	}
	if errors.Is(err, executor.ErrRefused) {
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonRefused, message: err.Error()})
	}
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionJobCreated)
	if c != nil && s.now().Sub(c.LastTransitionTime.Time) < startPatience {
		t.Status.Message = fmt.Sprintf("attempt %d cannot be started yet: %v", t.Status.Attempts, err)
		return err
	}
	return s.fail(ctx, t, outcome{reason: v1alpha1.ReasonStartFailed, message: fmt.Sprintf("the worker could not be started: %v", err)})
}

func (s run) tryStart(ctx context.Context, t *v1alpha1.Task) (executor.State, error) {
	res, err := s.resolve(ctx, t)
	if err != nil {
		return executor.State{}, err
	}
	if err := s.account(ctx, t); err != nil {
		return executor.State{}, err
	}
	var timeout time.Duration
	if t.Spec.Timeout != nil {
		timeout = t.Spec.Timeout.Value()
	}
	if timeout, err = s.inTime(t, timeout); err != nil {
		return executor.State{}, err
	}
	creds := res.credentials
	if !s.executor.ByReference() {
		life := timeout
		if res.mayPark {
			life = 0 // there is no limit on how long people take
		}
		if creds.Token, err = s.token(ctx, t, life); err != nil {
			return executor.State{}, err
		}
	}
	if err := s.append(ctx, t, first(t, begins(t, res.left))...); err != nil {
		return executor.State{}, err
	}
	r := executor.Run{
		Ref: runRef(t), Task: t, ID: string(t.Status.JobUID), Credentials: creds, Secrets: res.secrets, Absent: res.absent, ConfigMaps: res.configMaps, TransactionSecret: res.transactionSecret,
		Runtime: res.runtime, Remote: assignedRemote(t, res.remote), AgentSecret: res.agentSecret,
		Resources: t.Spec.Resources, Placement: placement(t.Spec.Execution, res.placement),
		Timeout: timeout, MemoryBytes: memoryLimit(t, res),
	}
	if r.Resources == nil {
		r.Resources = res.resources
	}
	state, err := s.executor.Start(ctx, r)
	if err == nil {
		s.skills.loaded(res.skills)
	}
	return state, err
}

// inTime shortens a timeout that would end after the deadline of the task's parent.
func (s run) inTime(t *v1alpha1.Task, timeout time.Duration) (time.Duration, error) {
	d := t.Status.Delegation
	if d == nil || d.Deadline == nil {
		return timeout, nil
	}
	left := d.Deadline.Sub(s.now())
	if left <= 0 {
		return 0, refusal.New(v1alpha1.ReasonTimedOut, "the time of the parent %q was over before the task could start", d.Parent)
	}
	if timeout == 0 || left < timeout {
		timeout = left
	}
	return timeout, nil
}

// begins returns the event for the beginning of an attempt, with warnings about what its run does not get.
func begins(t *v1alpha1.Task, left []string) v1alpha1.ExecutionEvent {
	e := phaseChanged(t, v1alpha1.TaskPending, v1alpha1.TaskRunning, strings.Join(left, "\n"))
	if len(left) > 0 {
		e.Severity = v1alpha1.SeverityWarning
		e.Summary += "; without: " + strings.Join(left, "; ")
	}
	return e
}

// started records that an attempt runs. From then on the task names it by the executor's own
// identity, if there is one.
func (s run) started(ctx context.Context, t *v1alpha1.Task, state executor.State) error {
	n := t.Status.Attempts
	if state.UID != "" {
		t.Status.JobUID = state.UID
	}
	content := map[string]any{"attempt": n, "jobName": t.Status.JobName, "jobUID": string(t.Status.JobUID)}
	err := s.append(ctx, t,
		event(t, v1alpha1.EventTaskJobCreated, fmt.Sprintf("controller/job/%d", n), fmt.Sprintf("run %s was created", t.Status.JobName), content),
		event(t, v1alpha1.EventTaskStarted, fmt.Sprintf("controller/started/%d", n), fmt.Sprintf("attempt %d was started", n), content))
	if err != nil {
		return err
	}
	if iterates(t) {
		s.note(ctx, t, v1alpha1.EventReasonIteration, fmt.Sprintf("iteration %d was started", t.Status.Iteration))
	}
	t.Status.Message = ""
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionJobCreated, metav1.ConditionTrue, v1alpha1.ReasonJobCreated, fmt.Sprintf("attempt %d runs as %s", n, t.Status.JobName))
	return step.ErrDone
}

// deliver starts the delivery of what a run left, under the same attempt and with a new token.
// How the run ended is known only after that.
func (s run) deliver(ctx context.Context, t *v1alpha1.Task) error {
	token, err := s.token(ctx, t, deliveryRunTime)
	if err != nil {
		return err
	}
	state, err := s.executor.Deliver(ctx, runRef(t), token)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if state.Phase != executor.Running {
		return s.settle(ctx, t, state)
	}
	t.Status.Message = fmt.Sprintf("attempt %d is over; what it left is being delivered", t.Status.Attempts)
	return step.ErrDone // its end will wake the task
}

// settle ends or retries the task after its run is over.
func (s run) settle(ctx context.Context, t *v1alpha1.Task, state executor.State) error {
	switch {
	case state.Succeeded() && iterates(t):
		return s.iterate(ctx, t, succeeded(state))
	case state.Succeeded() && t.Spec.Workspace.Writes():
		return s.deliverChanges(ctx, t, succeeded(state))
	case state.Succeeded():
		return s.finish(ctx, t, succeeded(state))
	case state.Cause == executor.CauseDeadline && state.Termination != nil && state.Termination.Reason == v1alpha1.ReasonResultNotSubmitted:
		// The work ended within its timeout, so the task does not fail for the deadline. It is not retried either.
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: state.Termination.Reason, message: state.Termination.Message})
	case state.NeverBegan || neverCame(t, state):
		o := diagnose(state)
		if c := waitingCondition(t); !state.NeverBegan {
			o = outcome{reason: c.Reason, message: c.Message}
		}
		o.message = "never began: " + o.message
		return s.fail(ctx, t, o)
	case state.Cause == executor.CauseDeadline && (state.Termination == nil || !state.Termination.Ended):
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonTimedOut, message: "task timed out"})
	case state.Termination != nil && slices.Contains([]string{
		v1alpha1.ReasonTokenBudgetExhausted, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonBudgetUnpriced,
	}, state.Termination.Reason):
		// The budget holds for all attempts together, and a Budget for all tasks.
		return s.finish(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: state.Termination.Reason, message: state.Termination.Message})
	default:
		return s.fail(ctx, t, diagnose(state))
	}
}

// deliverChanges begins the publication of what the run changed, when all that the task delegated has ended.
func (s run) deliverChanges(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	if t.Status.HasChildren {
		if waits, err := s.settleChildren(ctx, t, o); err != nil || waits {
			return cmp.Or(err, step.ErrDone) // the end of a child will wake the task
		}
	}
	return s.publish(ctx, t, o)
}

// neverCame reports whether a deadline ended a run that still waited to begin, which is how the executor gives up a
// run. An executor that was restarted meanwhile has forgotten it, but the status shows it.
func neverCame(t *v1alpha1.Task, state executor.State) bool {
	return state.Cause == executor.CauseDeadline && state.Termination == nil && waitingCondition(t) != nil
}

// fail retries the task as its policy says, or ends it as failed.
func (s run) fail(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	o.phase = v1alpha1.TaskFailed
	p := t.Spec.RetryPolicy
	failed := t.Status.Attempts - t.Status.Iteration // the others were iterations that succeeded
	if p == nil || failed > p.MaxRetries {
		return s.finish(ctx, t, o)
	}
	var initial time.Duration
	var multiplier float64
	if p.InitialDelay != nil {
		initial = p.InitialDelay.Value()
	}
	if p.BackoffMultiplier != nil {
		multiplier = *p.BackoffMultiplier
	}
	delay := retryDelay(initial, multiplier, failed)
	message := fmt.Sprintf("attempt %d failed: %s", t.Status.Attempts, o.message)
	if t.Status.HasChildren { // the next attempt delegates anew
		if _, err := s.settleChildren(ctx, t, o); err != nil {
			return err
		}
	}
	events, err := s.unsettled(ctx, t, message)
	if err != nil {
		return err
	}
	e := phaseChanged(t, v1alpha1.TaskRunning, v1alpha1.TaskPending, message)
	e.Severity = v1alpha1.SeverityWarning
	if err := s.append(ctx, t, first(t, append(events, e)...)...); err != nil {
		return err
	}
	notParked(t, "the attempt is over")
	waitsNoMore(t, "the attempt is over")
	st := &t.Status
	st.Phase = v1alpha1.TaskPending
	st.Message = fmt.Sprintf("%s; the next attempt starts in %s", message, delay)
	st.JobName, st.JobUID, st.PodName, st.PodUID = "", "", "", ""
	// Whole seconds are stored; rounding up keeps the delay from being shorter.
	st.NextAttemptTime = &metav1.Time{Time: s.now().Add(delay + time.Second - 1).Truncate(time.Second)}
	setCondition(st, t.Generation, v1alpha1.ConditionJobCreated, metav1.ConditionFalse, v1alpha1.ReasonJobRetrying, message)
	return step.ErrDone
}

func (s run) finish(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	if err := s.end(ctx, t, o); err != nil {
		return err
	}
	return step.ErrDone
}
