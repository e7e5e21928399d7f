// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/runspec"
)

var (
	errBoom  = errors.New("boom")
	errMoved = apierrors.NewConflict(schema.GroupResource{Resource: "tasks"}, "t", errBoom)
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// noPlace is what tasks without a coding agent need of pools.
func noPlace(context.Context, *v1alpha1.Task, v1alpha1.AgentRuntimeType) error { return nil }

// runs is an executor of one run that records what it is asked to do.
type runs struct {
	executor.Executor
	state    executor.State
	err      error
	startErr error
	asked    []string
	started  executor.Run
	// byReference makes it an executor that needs no token.
	byReference bool
}

func (r *runs) ByReference() bool { return r.byReference }

func (r *runs) State(context.Context, executor.Ref) (executor.State, error) { return r.state, r.err }

func (r *runs) Start(_ context.Context, run executor.Run) (executor.State, error) {
	r.asked = append(r.asked, "start")
	r.started = run
	return r.state, r.startErr
}

func (r *runs) Stop(context.Context, executor.Ref) error {
	r.asked = append(r.asked, "stop")
	return nil
}

func (r *runs) Remove(context.Context, types.UID) error {
	r.asked = append(r.asked, "remove")
	return nil
}

// Deliver lets the run continue.
func (r *runs) Deliver(_ context.Context, _ executor.Ref, token string) (executor.State, error) {
	r.asked = append(r.asked, "deliver with "+token)
	r.state.Phase, r.state.Undelivered = executor.Running, false
	return r.state, nil
}

// log notes appended events and ends.
type eventLog struct {
	events []string
	end    *outcome
	err    error
}

func (l *eventLog) append(_ context.Context, _ *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
	for _, e := range events {
		l.events = append(l.events, string(e.Type))
	}
	return l.err
}

func (l *eventLog) finish(_ context.Context, t *v1alpha1.Task, o outcome) error {
	l.end = &o
	t.Status.Phase = o.phase
	return l.err
}

func noCredentials(context.Context, *v1alpha1.Task) error { return nil }

func nothingForgotten(*v1alpha1.Task) error { return nil }

func nothingUnsettled(context.Context, *v1alpha1.Task, string) ([]v1alpha1.ExecutionEvent, error) {
	return nil, nil
}

func task(change ...func(*v1alpha1.Task)) *v1alpha1.Task {
	t := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "t", UID: "u", Generation: 3, CreationTimestamp: metav1.NewTime(noon()),
			Finalizers: []string{v1alpha1.FinalizerCleanup},
		},
		Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}
	for _, c := range change {
		c(t)
	}
	return t
}

func pending(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskPending }

func running(t *v1alpha1.Task) {
	t.Status.Phase = v1alpha1.TaskRunning
	t.Status.Attempts, t.Status.JobUID, t.Status.JobName = 1, "job", "t-1"
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionJobCreated, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonJobStarting, LastTransitionTime: metav1.NewTime(noon()),
	})
}

func isStarted(t *v1alpha1.Task) {
	running(t)
	setCondition(&t.Status, 1, v1alpha1.ConditionJobCreated, metav1.ConditionTrue, v1alpha1.ReasonJobCreated, "")
}

func deleted(t *v1alpha1.Task) { t.DeletionTimestamp = &metav1.Time{Time: noon()} }

func cancelAsked(t *v1alpha1.Task) {
	setCondition(&t.Status, 1, v1alpha1.ConditionCancelRequested, metav1.ConditionTrue, "CancelRequested", "enough")
}

func retries(n int32) func(*v1alpha1.Task) {
	return func(t *v1alpha1.Task) { t.Spec.RetryPolicy = &v1alpha1.RetryPolicy{MaxRetries: n} }
}

func outcomeIs(t *testing.T, err error, want string) {
	t.Helper()
	got := "nil"
	w, isWait := errors.AsType[step.Wait](err)
	switch {
	case isWait:
		got = "wait " + w.After.String()
	case errors.Is(err, step.ErrDone):
		got = "done"
	case err != nil:
		got = err.Error()
	}
	if got != want {
		t.Errorf("outcome = %s, want %s", got, want)
	}
}

func TestRun(t *testing.T) {
	exited := func(code int, term *runspec.Termination) executor.State {
		return executor.State{ID: "job", Phase: executor.Exited, ExitCode: code, Termination: term}
	}
	const retry, fail = v1alpha1.TaskPending, v1alpha1.TaskFailed
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		runs    runs
		resolve error
		now     time.Duration // after the attempt was written down
		want    string
		phase   v1alpha1.TaskPhase
		end     string // reason and message
		events  []string
		asked   []string
	}{
		{name: "not its phase", task: task(pending), want: "nil", phase: v1alpha1.TaskPending},
		{
			name: "starts what was never started", task: task(running), runs: runs{err: executor.ErrNotFound}, want: "done", phase: v1alpha1.TaskRunning,
			events: []string{"TaskCreated", "TaskPhaseChanged", "TaskJobCreated", "TaskStarted"}, asked: []string{"start"},
		},
		{
			name: "found again after a crash", task: task(running), runs: runs{state: executor.State{ID: "job", Phase: executor.Running}}, want: "done",
			phase: v1alpha1.TaskRunning, events: []string{"TaskJobCreated", "TaskStarted"},
		},
		{name: "still running", task: task(isStarted), runs: runs{state: executor.State{ID: "job", Phase: executor.Running}}, want: "done", phase: v1alpha1.TaskRunning},
		{name: "gone is never started again", task: task(isStarted), runs: runs{err: executor.ErrNotFound}, want: "done", phase: fail, end: "WorkerLost: the run is gone and left no report of its end"},
		{
			name: "another run", task: task(isStarted), runs: runs{state: executor.State{ID: "x", Phase: executor.Running}}, want: "done", phase: fail,
			end: "WorkerLost: the run that was found is not the one that was started",
		},
		{name: "succeeded", task: task(isStarted), runs: runs{state: exited(0, &runspec.Termination{Message: "wrote it"})}, want: "done", phase: v1alpha1.TaskSucceeded, end: ": wrote it"},
		{name: "ended before its start was told", task: task(running), runs: runs{state: exited(0, nil)}, want: "done", phase: v1alpha1.TaskSucceeded, end: ": the task is complete"},
		{name: "failed", task: task(isStarted), runs: runs{state: exited(1, &runspec.Termination{Reason: "ModelError", Message: "no"})}, want: "done", phase: fail, end: "ModelError: no"},
		{name: "failed without a word", task: task(isStarted), runs: runs{state: exited(75, nil)}, want: "done", phase: fail, end: "WorkerFailed: the worker ended with exit code 75 and left no report"},
		{
			name: "killed", task: task(isStarted), runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: -1, Signal: "killed"}}, want: "done", phase: fail,
			end: "WorkerKilled: the worker was ended by a signal (killed) and left no report",
		},
		{name: "lost", task: task(isStarted), runs: runs{state: executor.State{ID: "job", Phase: executor.Lost, Message: "nobody knows"}}, want: "done", phase: fail, end: "WorkerLost: nobody knows"},
		{
			name: "timed out", task: task(isStarted, retries(5)), runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: -1, Cause: executor.CauseDeadline}}, want: "done", phase: fail,
			end: "TimedOut: task timed out",
		},
		{
			name: "work done, delivery cut off by the deadline", task: task(isStarted, retries(5)), want: "done", phase: fail, end: "ResultNotSubmitted: no server",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: 75, Cause: executor.CauseDeadline, Termination: &runspec.Termination{Reason: v1alpha1.ReasonResultNotSubmitted, Message: "no server"}}},
		},
		{
			name: "work failed in time, delivered after the deadline", task: task(isStarted), want: "done", phase: fail, end: "CommandFailed: exit code 3",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: 1, Cause: executor.CauseDeadline, Termination: &runspec.Termination{Reason: "CommandFailed", Message: "exit code 3", Ended: true}}},
		},
		{
			name: "work stopped by the deadline", task: task(isStarted, retries(5)), want: "done", phase: fail, end: "TimedOut: task timed out",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: 1, Cause: executor.CauseDeadline, Termination: &runspec.Termination{Reason: v1alpha1.ReasonWorkerStopped, Message: "the worker was stopped"}}},
		},
		{
			name: "left to be delivered", task: task(isStarted), want: "done", phase: v1alpha1.TaskRunning, asked: []string{"deliver with token"},
			runs: runs{state: executor.State{ID: "job", Phase: executor.Lost, Undelivered: true}},
		},
		{name: "retried", task: task(isStarted, retries(1)), runs: runs{state: exited(1, nil)}, want: "done", phase: retry, events: []string{"TaskPhaseChanged"}},
		{
			name: "gone, and what of it", task: task(isStarted), runs: runs{err: &executor.MissingError{What: "there is no Job t-1"}}, want: "done", phase: fail,
			end: "WorkerLost: the run is gone and left no report of its end: there is no Job t-1",
		},
		{
			name: "the executor's own identity", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.JobUID = "uid" }),
			runs: runs{state: executor.State{ID: "job", UID: "uid", Phase: executor.Running}}, want: "done", phase: v1alpha1.TaskRunning,
		},
		{
			name: "the Pod is accepted", task: task(isStarted), runs: runs{state: executor.State{ID: "job", Phase: executor.Running, PodName: "p", PodUID: "pod"}},
			want: "done", phase: v1alpha1.TaskRunning,
		},
		{
			name: "another Pod than the one that was accepted", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.PodName, t.Status.PodUID = "p", "pod" }),
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, PodName: "q", PodUID: "later"}}, want: "done", phase: fail,
			end: "WorkerLost: pod p is gone; pod q was not started for this run",
		},
		{
			name: "a Job with the run id of the one that was started", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.JobUID = "uid" }),
			runs: runs{state: executor.State{ID: "uid", UID: "other", Phase: executor.Exited}}, want: "done", phase: fail,
			end: "WorkerLost: the run that was found is not the one that was started",
		},
		{
			name: "a Job that is there before the start", task: task(running), want: "done", phase: fail, asked: []string{"start"},
			runs: runs{byReference: true, state: executor.State{ID: "job", UID: "forged", Phase: executor.Exited}, startErr: executor.ErrRefused},
			end:  "Refused: " + executor.ErrRefused.Error(), events: []string{"TaskCreated", "TaskPhaseChanged"},
		},
		{
			name: "another Job", task: task(isStarted, func(t *v1alpha1.Task) { t.Status.JobUID = "uid" }),
			runs: runs{state: executor.State{ID: "job", UID: "other", Phase: executor.Running}}, want: "done", phase: fail,
			end: "WorkerLost: the run that was found is not the one that was started",
		},
		{
			name: "ended by the host", task: task(isStarted), want: "done", phase: fail, end: "OOMKilled: it needed more memory; the worker said: no",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: 1, Reason: v1alpha1.ReasonOOMKilled, Message: "it needed more memory", Termination: &runspec.Termination{Reason: "CommandFailed", Message: "no"}}},
		},
		{
			name: "node lost", task: task(isStarted), want: "done", phase: fail, end: "NodeLost: node n1 does not answer",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Lost, Reason: v1alpha1.ReasonNodeLost, Message: "node n1 does not answer"}},
		},
		{
			name: "last words without a report", task: task(isStarted), want: "done", phase: fail,
			end:  "WorkerFailed: the worker ended with exit code 2 and left no report: panic: no",
			runs: runs{state: executor.State{ID: "job", Phase: executor.Exited, ExitCode: 2, Message: "panic: no"}},
		},
		{name: "lost is retried by policy", task: task(isStarted, retries(1)), runs: runs{state: executor.State{ID: "job", Phase: executor.Lost}}, want: "done", phase: retry, events: []string{"TaskPhaseChanged"}},
		{
			name: "retries used up", task: task(isStarted, retries(1), func(t *v1alpha1.Task) { t.Status.Attempts = 2 }), runs: runs{state: exited(1, &runspec.Termination{Message: "again"})},
			want: "done", phase: fail, end: "WorkerFailed: again",
		},
		{
			name: "start error", task: task(running), runs: runs{err: executor.ErrNotFound, startErr: errBoom}, want: "boom", phase: v1alpha1.TaskRunning,
			events: []string{"TaskCreated", "TaskPhaseChanged"}, asked: []string{"start"},
		},
		{
			name: "start error for too long", task: task(running), runs: runs{err: executor.ErrNotFound, startErr: errBoom}, now: startPatience, want: "done", phase: fail,
			end: "StartFailed: the worker could not be started: boom", events: []string{"TaskCreated", "TaskPhaseChanged"}, asked: []string{"start"},
		},
		{name: "secret gone before the start", task: task(running), runs: runs{err: executor.ErrNotFound}, resolve: refusal.Missing(v1alpha1.ReasonSecretNotFound, "no secret"), want: "done", phase: fail, end: "SecretNotFound: no secret"},
		{name: "server away", task: task(running), runs: runs{err: executor.ErrNotFound}, resolve: errBoom, want: "boom", phase: v1alpha1.TaskRunning},
		{name: "executor unreadable", task: task(isStarted), runs: runs{err: errBoom}, want: "run: boom", phase: v1alpha1.TaskRunning},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventLog{}
			s := run{
				now: func() time.Time { return noon().Add(tc.now) }, executor: &tc.runs, append: l.append, end: l.finish, unsettled: nothingUnsettled,
				resolve: func(context.Context, *v1alpha1.Task) (*resolved, error) { return &resolved{}, tc.resolve },
				account: func(context.Context, *v1alpha1.Task) error { return nil },
				token:   func(context.Context, *v1alpha1.Task, time.Duration) (string, error) { return "token", nil },
			}
			outcomeIs(t, s.do(t.Context(), tc.task), tc.want)
			if tc.task.Status.Phase != tc.phase {
				t.Errorf("phase = %s, want %s", tc.task.Status.Phase, tc.phase)
			}
			end := ""
			if l.end != nil {
				end = l.end.reason + ": " + l.end.message
			}
			if end != tc.end {
				t.Errorf("end = %q, want %q", end, tc.end)
			}
			if d := cmp.Diff(tc.events, l.events); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.asked, tc.runs.asked); d != "" {
				t.Error(d)
			}
			if slices.Contains(tc.runs.asked, "start") && (tc.runs.started.ID != "job" || tc.runs.started.Attempt != 1 || !tc.runs.byReference && tc.runs.started.Credentials.Token != "token") {
				t.Errorf("started %+v", tc.runs.started)
			}
			if tc.phase == retry && tc.want == "done" {
				st := tc.task.Status
				if st.NextAttemptTime == nil || !st.NextAttemptTime.Time.Equal(noon().Add(10*time.Second)) || st.JobUID != "" || st.Attempts != 1 {
					t.Errorf("status of a retry = %+v", st)
				}
			}
		})
	}
}

// TestStartByReference: a run whose host knows the secrets gets no token, and the
// task takes over the host's identity of the run.
func TestStartByReference(t *testing.T) {
	l := &eventLog{}
	e := &runs{err: executor.ErrNotFound, state: executor.State{ID: "job", UID: "uid", Phase: executor.Running}, byReference: true}
	accounts := 0
	s := run{
		now: noon, append: l.append, executor: e,
		resolve: func(context.Context, *v1alpha1.Task) (*resolved, error) {
			return &resolved{agentSecret: "files", secrets: []plan.Secret{{Use: plan.ForTool, For: types.NamespacedName{Namespace: "n", Name: "x"}}}}, nil
		},
		account: func(context.Context, *v1alpha1.Task) error { accounts++; return nil },
		token: func(context.Context, *v1alpha1.Task, time.Duration) (string, error) {
			t.Error("a token was made")
			return "", nil
		},
	}
	tk := task(running)
	outcomeIs(t, s.do(t.Context(), tk), "done")
	if accounts != 1 || e.started.Credentials.Token != "" || e.started.AgentSecret != "files" || len(e.started.Secrets) != 1 || e.started.Task != tk {
		t.Errorf("%d accounts, started %+v", accounts, e.started)
	}
	if tk.Status.JobUID != "uid" {
		t.Errorf("identity of the run: %s", tk.Status.JobUID)
	}
	refused := &runs{err: executor.ErrNotFound, startErr: fmt.Errorf("%w: no such class", executor.ErrRefused), byReference: true}
	s.executor, s.end = refused, l.finish
	outcomeIs(t, s.do(t.Context(), task(running)), "done")
	if l.end == nil || l.end.reason != v1alpha1.ReasonRefused || !strings.Contains(l.end.message, "no such class") {
		t.Errorf("refused by the host: %+v", l.end)
	}
}

// TestReasonOfTheRun: the run's condition says why it ended, with a valid reason.
func TestReasonOfTheRun(t *testing.T) {
	for given, want := range map[string]string{
		v1alpha1.ReasonOOMKilled: "OOMKilled", "": v1alpha1.ReasonJobEnded, "not a word": v1alpha1.ReasonJobEnded, "1st": v1alpha1.ReasonJobEnded, strings.Repeat("x", 2000): v1alpha1.ReasonJobEnded,
	} {
		tk := task(isStarted)
		setTerminal(&tk.Status, 1, outcome{phase: v1alpha1.TaskFailed, reason: given, message: "why"}, metav1.NewTime(noon()))
		if c := meta.FindStatusCondition(tk.Status.Conditions, v1alpha1.ConditionJobCreated); c.Status != metav1.ConditionFalse || c.Reason != want {
			t.Errorf("%q became %+v", given, c)
		}
	}
}

func TestAdmit(t *testing.T) {
	unverified := func(k *v1alpha1.Task) {
		setCondition(&k.Status, 1, v1alpha1.ConditionRequesterVerified, metav1.ConditionFalse, v1alpha1.ReasonRequesterUnverified, "no seal")
	}
	waitsLong := func(k *v1alpha1.Task) { waitsFor(k, v1alpha1.ReasonNamespaceTaskLimitReached, "full") }
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		resolve error
		lock    error
		slot    error
		now     time.Duration
		want    string
		end     string
		message string
		waits   string // reason of the condition
		warned  bool
		left    bool // gives its slot to others
	}{
		{name: "not its phase", task: task(isStarted), want: "nil"},
		{name: "assigned", task: task(pending), want: "done"},
		{name: "retry not due", task: task(pending, func(t *v1alpha1.Task) { t.Status.NextAttemptTime = &metav1.Time{Time: noon().Add(time.Minute)} }), want: "wait 1m0s", left: true},
		{name: "retry due", task: task(pending, func(t *v1alpha1.Task) { t.Status.NextAttemptTime = &metav1.Time{Time: noon()} }), want: "done"},
		{name: "missing, but young", task: task(pending), resolve: refusal.Missing(v1alpha1.ReasonAgentNotFound, "no agent"), want: "wait 1s", message: "no agent", left: true},
		{name: "missing, and older", task: task(pending), resolve: refusal.Missing(v1alpha1.ReasonAgentNotFound, "no agent"), now: 5 * time.Second, want: "done", end: "AgentNotFound: no agent", left: true},
		{name: "refused at once", task: task(pending), resolve: refusal.New(v1alpha1.ReasonRefused, "no"), want: "done", end: "Refused: no", left: true},
		{name: "session held", task: task(pending), lock: queued{v1alpha1.ReasonSessionBusy, step.Wait{Reason: "held"}}, want: "wait 0s", message: "held", waits: v1alpha1.ReasonSessionBusy, left: true},
		{name: "session missing", task: task(pending), lock: refusal.Missing(v1alpha1.ReasonSessionNotFound, "none"), now: time.Minute, want: "done", end: "SessionNotFound: none", left: true},
		{name: "no room", task: task(pending), slot: queued{v1alpha1.ReasonNamespaceTaskLimitReached, step.Wait{Reason: "full"}}, want: "wait 0s", message: "full", waits: v1alpha1.ReasonNamespaceTaskLimitReached, warned: true},
		{
			name: "still no room", task: task(pending, waitsLong), slot: queued{v1alpha1.ReasonNamespaceTaskLimitReached, step.Wait{Reason: "full"}}, want: "wait 0s",
			message: "full", waits: v1alpha1.ReasonNamespaceTaskLimitReached,
		},
		{name: "room after a while", task: task(pending, waitsLong), want: "done"},
		{name: "server away", task: task(pending), resolve: errBoom, want: "boom", left: true},
		{
			name: "requester not verified", task: task(pending, unverified), resolve: errBoom, want: "done", left: true,
			end: "RequesterUnverified: who asked for the task cannot be verified; create it again",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventLog{}
			left, warned := false, false
			s := admit{
				credentials: noCredentials,
				append:      l.append,
				leaveSlot:   func(context.Context, *v1alpha1.Task) error { left = true; return nil },
				warn:        func(context.Context, *v1alpha1.Task, string, string) { warned = true },
				now:         func() time.Time { return noon().Add(tc.now) }, newID: func() types.UID { return "job" }, grace: 5 * time.Second, end: l.finish,
				resolve: func(context.Context, *v1alpha1.Task) (*resolved, error) {
					return &resolved{agentName: "a", providerName: "p", model: "m"}, tc.resolve
				},
				lockSession: func(context.Context, *v1alpha1.Task) error { return tc.lock },
				takeSlot:    func(context.Context, *v1alpha1.Task) error { return tc.slot },
				takePlace:   noPlace,
				leavePlace:  func(context.Context, *v1alpha1.Task) error { return nil },
			}
			before := tc.task.DeepCopy()
			outcomeIs(t, s.do(t.Context(), tc.task), tc.want)
			end := ""
			if l.end != nil {
				end = l.end.reason + ": " + l.end.message
			}
			if end != tc.end || tc.task.Status.Message != tc.message {
				t.Errorf("end = %q, want %q; message = %q, want %q", end, tc.end, tc.task.Status.Message, tc.message)
			}
			waits := ""
			if c := waitingCondition(tc.task); c != nil {
				waits = c.Reason
			}
			if waits != tc.waits || warned != tc.warned || left != tc.left {
				t.Errorf("waits for %q, warned %v, left %v", waits, warned, left)
			}
			st := tc.task.Status
			if tc.want == "done" && tc.end == "" {
				c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionJobCreated)
				if st.Phase != v1alpha1.TaskRunning || st.Attempts != 1 || st.JobUID != "job" || st.JobName != "t-1" || st.StartTime == nil ||
					st.AgentName != "a" || st.Provider != "p" || st.Model != "m" || c == nil || c.Status != metav1.ConditionFalse {
					t.Errorf("status = %+v", st)
				}
			} else if st.Attempts != before.Status.Attempts || st.JobUID != before.Status.JobUID {
				t.Errorf("an attempt was written down: %+v", st)
			}
			if len(l.events) > 0 {
				t.Errorf("events of a task that had begun: %v", l.events)
			}
		})
	}
}

func TestClosedStreamDecides(t *testing.T) {
	over := &runs{state: executor.State{Phase: executor.Exited}}
	alive := &runs{state: executor.State{Phase: executor.Running}}
	for _, tc := range []struct {
		name string
		runs *runs
		err  error
		want string
		end  bool
	}{
		{"conflict of an append ends the task", over, untilClosed(func(context.Context, *v1alpha1.Task, ...v1alpha1.ExecutionEvent) error { return errMoved })(t.Context(), nil), "done", true},
		{"its run first", alive, errStreamClosed, "wait 5s", false},
		{"other errors pass", over, errBoom, "boom", false},
		{"no error", over, nil, "nil", false},
	} {
		l := &eventLog{}
		s := closed(tc.runs, l.finish, step.Step[*v1alpha1.Task]{Do: func(context.Context, *v1alpha1.Task) error { return tc.err }})
		outcomeIs(t, s.Do(t.Context(), task(isStarted)), tc.want)
		if (l.end != nil) != tc.end {
			t.Errorf("%s: end = %+v", tc.name, l.end)
		}
	}
}

// seven is the use of seven requests; the first Provider did not answer the last one.
func seven() trace.Usage {
	var u trace.Usage
	for i, e := range []v1alpha1.ExecutionEvent{
		{Type: v1alpha1.EventModelRequestCompleted, Provider: "first", Model: "m1"},
		{Type: v1alpha1.EventModelRequestFailed, Provider: "first", Model: "m1"},
		{Type: v1alpha1.EventModelRequestCompleted, Provider: "second", Model: "m2"},
		{Type: v1alpha1.EventModelRequestFailed, Provider: "third", Model: "m3"},
		{Type: v1alpha1.EventModelRequestFailed},
		{Type: v1alpha1.EventModelRequestFailed},
		{Type: v1alpha1.EventModelRequestFailed},
	} {
		e.Seq = int64(i + 1)
		u.Add(&e)
	}
	return u
}

func TestEnd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		task   *v1alpha1.Task
		o      outcome
		stands v1alpha1.EventType
		fresh  error
		want   v1alpha1.TaskPhase
		err    string
	}{
		{name: "succeeded", task: task(isStarted), o: outcome{phase: v1alpha1.TaskSucceeded, message: "ok"}, stands: v1alpha1.EventTaskSucceeded, want: v1alpha1.TaskSucceeded},
		{name: "failed", task: task(isStarted), o: outcome{phase: v1alpha1.TaskFailed, message: "no"}, stands: v1alpha1.EventTaskFailed, want: v1alpha1.TaskFailed},
		{name: "the log says otherwise", task: task(isStarted), o: outcome{phase: v1alpha1.TaskFailed, message: "no"}, stands: v1alpha1.EventTaskCancelled, want: v1alpha1.TaskCancelled},
		{name: "a stale task is left alone", task: task(isStarted), o: outcome{phase: v1alpha1.TaskFailed}, fresh: errMoved, want: v1alpha1.TaskRunning, err: errMoved.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			released, touched, said := false, false, false
			at := metav1.NewMicroTime(noon().Add(time.Second))
			f := finisher{
				lost: func(context.Context, *v1alpha1.Task) error { return nil },
				now:  noon, fresh: func(context.Context, *v1alpha1.Task) error { return tc.fresh },
				unsettled: func(_ context.Context, _ *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error) {
					return []v1alpha1.ExecutionEvent{*approval.Cancel(&v1alpha1.Approval{}, why)}, nil
				},
				terminal: func(_ context.Context, _ *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) (v1alpha1.ExecutionEvent, error) {
					e := events[len(events)-1]
					if len(events) != 3 || events[0].Type != v1alpha1.EventApprovalCancelled {
						t.Errorf("events %+v", events)
					}
					if e.DedupKey == "" || e.Type != endingOf(tc.o.phase).event {
						t.Errorf("terminal event %+v", e)
					}
					e.Type, e.CreatedAt = tc.stands, at
					return e, nil
				},
				usage:  func(context.Context, *v1alpha1.Task) (trace.Usage, error) { return seven(), nil },
				result: func(context.Context, *v1alpha1.Task) (string, bool, error) { return "42", true, nil },
				converse: func(_ context.Context, _ *v1alpha1.Task, result string) (string, error) {
					said = result == "42"
					return "a note", nil
				},
				release: func(_ context.Context, _ *v1alpha1.Task, u *v1alpha1.TaskUsage) error {
					released = u.ModelRequests == 7
					return nil
				},
				touchAgent: func(_ context.Context, _ *v1alpha1.Task, when metav1.Time) error {
					touched = when.Time.Equal(at.Time)
					return nil
				},
			}
			err := f.end(t.Context(), tc.task, tc.o)
			st := tc.task.Status
			if st.Phase != tc.want {
				t.Errorf("phase = %s", st.Phase)
			}
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("error = %v", err)
				}
				return
			}
			c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionComplete)
			if c == nil || c.Status != metav1.ConditionTrue || c.Reason != "Task"+string(tc.want) {
				t.Errorf("condition = %+v", c)
			}
			if succeeds := tc.o.phase == v1alpha1.TaskSucceeded; said != succeeds || succeeds && st.Message != "ok; a note" {
				t.Errorf("messages were added: %v; message %q", said, st.Message)
			}
			if st.Provider != "second" || st.Model != "m2" {
				t.Errorf("%s %s answered, want the second provider", st.Provider, st.Model)
			}
			if err != nil || !released || !touched || st.CompletionTime == nil || st.Usage.ModelRequests != 7 || !st.ResultRef.Available ||
				meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionJobCreated) {
				t.Errorf("%v, released %v, touched %v, status %+v", err, released, touched, st)
			}
		})
	}
}

func TestCompleted(t *testing.T) {
	done := func(t *v1alpha1.Task) {
		setTerminal(&t.Status, 1, outcome{phase: v1alpha1.TaskSucceeded}, metav1.NewTime(noon()))
	}
	hooked := func(t *v1alpha1.Task) { t.Spec.WebhookURL = "http://x" }
	for _, tc := range []struct {
		name      string
		task      *v1alpha1.Task
		err       error
		want      string
		ended     bool
		posts     int
		delivered bool
		warned    string
	}{
		{name: "not yet", task: task(isStarted, hooked), want: "nil"},
		{name: "no callback", task: task(done), want: "done"},
		{name: "delivered", task: task(done, hooked), want: "done", posts: 1, delivered: true},
		{name: "not twice", task: task(done, hooked, func(t *v1alpha1.Task) { t.Status.WebhookDelivered = true }), want: "done", delivered: true},
		{name: "again later", task: task(done, hooked), err: errBoom, want: "wait 30s", posts: 1, warned: "WebhookFailed: the completion callback was not delivered and will be sent again: boom"},
		{
			name: "a refused destination", task: task(done, hooked), err: fmt.Errorf("dial: %w", egress.ErrRefused), want: "wait 1h0m0s", posts: 1,
			warned: "WebhookRefused: spec.webhookURL: the completion callback is not sent there: dial: address not allowed; it must be a public address, or one that the operator allowed (--webhook-allow)",
		},
		{name: "a missing terminal event", task: task(hooked, func(t *v1alpha1.Task) { t.Status.Phase = v1alpha1.TaskFailed }), want: "done", ended: true},
	} {
		l := &eventLog{}
		posts := 0
		s := completed{end: l.finish, post: func(_ context.Context, u string, b webhookBody) error {
			posts++
			if u != "http://x" || b.TaskName != "t" || b.Phase != "Succeeded" {
				t.Errorf("posted %+v to %s", b, u)
			}
			return tc.err
		}}
		warned := ""
		s.warn = func(_ context.Context, _ *v1alpha1.Task, reason, message string) { warned = reason + ": " + message }
		t.Run(tc.name, func(t *testing.T) {
			outcomeIs(t, s.do(t.Context(), tc.task), tc.want)
			if warned != tc.warned {
				t.Errorf("warned %q, want %q", warned, tc.warned)
			}
			if posts != tc.posts || tc.task.Status.WebhookDelivered != tc.delivered || (l.end != nil) != tc.ended {
				t.Errorf("%d posts, delivered %v, end %+v", posts, tc.task.Status.WebhookDelivered, l.end)
			}
		})
	}
}

func TestUsageSum(t *testing.T) {
	ev := func(typ v1alpha1.EventType, in, out int64) *v1alpha1.ExecutionEvent {
		e := &v1alpha1.ExecutionEvent{Type: typ}
		if in >= 0 {
			e.InputTokens = &in
		}
		if out >= 0 {
			e.OutputTokens = &out
		}
		return e
	}
	var s trace.Usage
	if s.Sum() != nil {
		t.Error("usage without requests")
	}
	for range 4 {
		s.Add(ev(v1alpha1.EventModelRequestStarted, -1, -1))
	}
	s.Add(ev(v1alpha1.EventModelRequestCompleted, 10, 2))
	s.Add(ev(v1alpha1.EventModelRequestCompleted, -1, -1))
	s.Add(ev(v1alpha1.EventModelRequestFailed, 5, -1))
	got := s.Sum()
	want := &v1alpha1.TaskUsage{InputTokens: new(int64(15)), OutputTokens: new(int64(2)), ModelRequests: 4, UnreportedRequests: 3}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	first, second := seven(), trace.Usage{}
	second.Add(&v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, Seq: 2, Provider: "earlier"})
	for _, sums := range [][2]trace.Usage{{first, second}, {second, first}} {
		sums[0].Merge(&sums[1])
		if provider, model := sums[0].Answered(); provider != "second" || model != "m2" {
			t.Errorf("%s %s answered last", provider, model)
		}
	}
	none := trace.Usage{}
	none.Add(ev(v1alpha1.EventModelRequestCompleted, -1, -1))
	if u := none.Sum(); u.InputTokens != nil || u.OutputTokens != nil || u.UnreportedRequests != 1 {
		t.Errorf("unreported became %+v", u)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 250)
	other := strings.Repeat("a", 249) + "b"
	jobName := func(name string, attempt int32) string { return executor.Ref{Name: name, Attempt: attempt}.JobName() }
	if got := jobName("t", 2); got != "t-2" {
		t.Error(got)
	}
	a, b := jobName(long, 12), jobName(other, 12)
	if a == b || len(a) > 63 || !strings.HasSuffix(a, "-12") {
		t.Errorf("%s and %s", a, b)
	}
	if l := v1alpha1.LabelValue(long); len(l) > 63 || l == v1alpha1.LabelValue(other) {
		t.Error(l)
	}
}

// A run that waits reports for what, once for each cause, and its end reports that it never began.
func TestWaitingRun(t *testing.T) {
	e := &runs{state: executor.State{ID: "job", Phase: executor.Running}}
	l, warned := &eventLog{}, []string(nil)
	s := run{
		now: noon, executor: e, append: l.append, end: l.finish, unsettled: nothingUnsettled,
		warn: func(_ context.Context, _ *v1alpha1.Task, reason, _ string) { warned = append(warned, reason) },
	}
	k := task(isStarted)
	for _, w := range []struct{ reason, message, want string }{
		{"", "", ""},
		{v1alpha1.ReasonQuotaExceeded, "used: 4", "used: 4"},
		{v1alpha1.ReasonQuotaExceeded, "used: 5", "used: 4"}, // no news
		{v1alpha1.ReasonUnschedulable, "no node", "no node"},
		{"", "", ""},
		{v1alpha1.ReasonUnschedulable, "no node", "no node"},
	} {
		e.state.Waiting = executor.Waiting{Reason: w.reason, Message: w.message}
		outcomeIs(t, s.do(t.Context(), k), "done")
		c := waitingCondition(k)
		if k.Status.Message != w.want || (c != nil) != (w.reason != "") || c != nil && (c.Reason != w.reason || c.Message != w.want) {
			t.Errorf("%+v: message %q, condition %+v", w, k.Status.Message, c)
		}
	}
	if d := cmp.Diff([]string{"QuotaExceeded", "Unschedulable", "Unschedulable"}, warned); d != "" {
		t.Error(d)
	}
	asked := k.DeepCopy()
	cancelAsked(asked)
	outcomeIs(t, cancel{executor: &runs{err: executor.ErrNotFound}, end: l.finish}.do(t.Context(), asked), "done")
	if l.end.message != "the task was cancelled: enough; it never began: no node" {
		t.Errorf("cancelled: %s", l.end.message)
	}
	e.state = executor.State{ID: "job", Phase: executor.Exited, ExitCode: -1, NeverBegan: true, Reason: v1alpha1.ReasonUnschedulable, Message: "no node takes the pod"}
	outcomeIs(t, s.do(t.Context(), k.DeepCopy()), "done")
	if l.end.reason != v1alpha1.ReasonUnschedulable || l.end.message != "never began: no node takes the pod" {
		t.Errorf("given up: %+v", l.end)
	}
	e.state = executor.State{ID: "job", Phase: executor.Exited, ExitCode: -1, NeverBegan: true, Cause: executor.CauseDeadline}
	outcomeIs(t, s.do(t.Context(), k.DeepCopy()), "done")
	if l.end.reason != v1alpha1.ReasonStartTimedOut || l.end.message != "never began: the timeout of the task passed before" {
		t.Errorf("deadline: %+v", l.end)
	}
	// After a restart of the executor: only the status says that the run still waited.
	e.state = executor.State{ID: "job", Phase: executor.Exited, ExitCode: -1, Cause: executor.CauseDeadline}
	outcomeIs(t, s.do(t.Context(), k.DeepCopy()), "done")
	if l.end.reason != v1alpha1.ReasonUnschedulable || l.end.message != "never began: no node" {
		t.Errorf("given up before a restart: %+v", l.end)
	}
}
