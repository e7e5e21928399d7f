// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// iterating makes a task the nth iteration of an autonomous one.
func iterating(n int32) func(*v1alpha1.Task) {
	return func(t *v1alpha1.Task) {
		isStarted(t)
		t.Spec = v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "a"}}
		t.Status.Iteration, t.Status.Attempts = n, n+1
		begunIteration(t)
	}
}

func limited(most int32) *v1alpha1.Agent {
	return &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true, Autonomous: true, MaxIterations: most}}}
}

func TestWhatFollowsAnIteration(t *testing.T) {
	held := func(t *v1alpha1.Task) { t.Spec.Suspend = true }
	done, open := &v1alpha1.TaskPlan{GoalComplete: true}, &v1alpha1.TaskPlan{}
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		plan    *v1alpha1.TaskPlan
		agent   *v1alpha1.Agent
		message string // of the end; empty if there is none
		phase   v1alpha1.TaskPhase
		next    int32
	}{
		{"no plan", task(iterating(0)), nil, limited(0), "", v1alpha1.TaskPending, 1},
		{"not complete", task(iterating(41)), open, limited(0), "", v1alpha1.TaskPending, 42},
		{"complete", task(iterating(2)), done, limited(0), "goal complete after 3 iterations", v1alpha1.TaskSucceeded, 2},
		{"complete at the limit", task(iterating(2)), done, limited(3), "goal complete after 3 iterations", v1alpha1.TaskSucceeded, 2},
		{"complete and suspended", task(iterating(0), held), done, limited(0), "goal complete after 1 iterations", v1alpha1.TaskSucceeded, 0},
		{"limit", task(iterating(2)), open, limited(3), "reached max iterations (3)", v1alpha1.TaskSucceeded, 2},
		{"below the limit", task(iterating(1)), open, limited(3), "", v1alpha1.TaskPending, 2},
		{"limit lowered", task(iterating(5)), open, limited(3), "reached max iterations (3)", v1alpha1.TaskSucceeded, 5},
		{"suspended", task(iterating(1), held), open, limited(0), "", v1alpha1.TaskRunning, 1},
		{"agent deleted", task(iterating(0)), open, nil, "", v1alpha1.TaskPending, 1},
		{"agent plain", task(iterating(1)), open, &v1alpha1.Agent{}, "the agent does not work in iterations any more; 2 were done: ok", v1alpha1.TaskSucceeded, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			log := &eventLog{}
			s := iterations{
				plan:   func(context.Context, *v1alpha1.Task) (*v1alpha1.TaskPlan, error) { return tc.plan, nil },
				agent:  func(context.Context, *v1alpha1.Task) (*v1alpha1.Agent, error) { return tc.agent, nil },
				append: log.append, unsettled: nothingUnsettled, end: log.finish,
			}
			outcomeIs(t, s.next(t.Context(), tc.task, outcome{phase: v1alpha1.TaskSucceeded, message: "ok"}), "done")
			st := tc.task.Status
			if st.Phase != tc.phase || st.Iteration != tc.next || (tc.message != "") != (log.end != nil) || log.end != nil && log.end.message != tc.message {
				t.Errorf("%s %d %+v", st.Phase, st.Iteration, log.end)
			}
			if pending := st.Phase == v1alpha1.TaskPending; pending && (st.JobUID != "" || st.NextAttemptTime != nil || !slices.Equal(log.events, []string{"TaskPhaseChanged"})) {
				t.Errorf("%+v %v", st, log.events)
			}
			if isSuspended(tc.task) != (tc.phase == v1alpha1.TaskRunning) || usesSlot(tc.task) {
				t.Errorf("suspended %t, uses a slot %t", isSuspended(tc.task), usesSlot(tc.task))
			}
		})
	}
}

// TestFailedIterationsAreRetried: attempts that were iterations do not count against the retry policy.
func TestFailedIterationsAreRetried(t *testing.T) {
	for _, tc := range []struct {
		iteration, attempts, retries int32
		ends                         bool
	}{{0, 1, 0, true}, {0, 1, 1, false}, {0, 2, 1, true}, {7, 8, 1, false}, {7, 9, 1, true}, {7, 9, 2, false}, {7, 8, 0, true}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			log := &eventLog{}
			tk := task(iterating(tc.iteration), retries(tc.retries))
			tk.Status.Attempts = tc.attempts
			s := run{now: noon, append: log.append, unsettled: nothingUnsettled, end: log.finish}
			outcomeIs(t, s.fail(t.Context(), tk, outcome{message: "no"}), "done")
			if (log.end != nil) != tc.ends || tk.Status.Iteration != tc.iteration {
				t.Errorf("ended %t, iteration %d", log.end != nil, tk.Status.Iteration)
			}
		})
	}
}

// TestIterationsDoNotEndTheTask: the end of a run of an autonomous task is that of an iteration, and a cancellation
// between two iterations is a cancellation.
func TestIterationsDoNotEndTheTask(t *testing.T) {
	over := &runs{state: executor.State{Phase: executor.Exited, ID: "job"}}
	var asked []string
	s := run{now: noon, executor: over, iterate: func(_ context.Context, _ *v1alpha1.Task, o outcome) error {
		asked = append(asked, string(o.phase))
		return step.ErrDone
	}}
	tk := task(iterating(1))
	outcomeIs(t, s.do(t.Context(), tk), "done")
	suspend(tk)
	over.err = executor.ErrNotFound // nothing is known of the run any more
	outcomeIs(t, s.do(t.Context(), tk), "done")
	if !slices.Equal(asked, []string{"Succeeded", "Succeeded"}) {
		t.Errorf("%v", asked)
	}
	over.err = nil
	log := &eventLog{}
	cancelAsked(tk)
	outcomeIs(t, cancel{executor: over, end: log.finish}.do(t.Context(), tk), "done")
	if log.end == nil || log.end.phase != v1alpha1.TaskCancelled {
		t.Errorf("%+v", log.end)
	}
	iteratesNoMore(tk)
	if c := meta.FindStatusCondition(tk.Status.Conditions, v1alpha1.ConditionIterating); c.Reason != v1alpha1.ReasonJobEnded {
		t.Errorf("%+v", c)
	}
}
