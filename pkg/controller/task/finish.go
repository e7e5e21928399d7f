// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

// outcome is how a task is to end.
type outcome struct {
	phase v1alpha1.TaskPhase
	// reason is one CamelCase word; empty on success.
	reason  string
	message string
}

// finisher brings tasks to their end.
type finisher struct {
	now   func() time.Time
	fresh func(context.Context, *v1alpha1.Task) error
	// lost records the ends of calls that a worker which was killed did not record.
	lost func(context.Context, *v1alpha1.Task) error
	// unsettled returns the events that end the task's approvals that are still pending.
	unsettled func(ctx context.Context, t *v1alpha1.Task, why string) ([]v1alpha1.ExecutionEvent, error)
	// terminal appends events, of which the last is the terminal one, and returns
	// the one that closed the stream.
	terminal func(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) (v1alpha1.ExecutionEvent, error)
	usage    func(context.Context, *v1alpha1.Task) (trace.Usage, error)
	// result returns what the worker submitted, if anything.
	result func(context.Context, *v1alpha1.Task) (text string, ok bool, err error)
	// converse adds the prompt and the result of a task that succeeded to its session. If that is
	// not possible, the note says why.
	converse func(ctx context.Context, t *v1alpha1.Task, result string) (note string, err error)
	release  func(context.Context, *v1alpha1.Task, *v1alpha1.TaskUsage) error
	origin   origin
	// touchAgent notes that the task's Agent was used.
	touchAgent func(context.Context, *v1alpha1.Task, metav1.Time) error
}

// end appends the terminal event and sets the terminal status in memory. It may be repeated
// until that status is stored.
func (f *finisher) end(ctx context.Context, t *v1alpha1.Task, o outcome) error {
	left, err := f.look(ctx, t, o)
	if err != nil {
		return err
	}
	if err := f.origin.freeze(ctx, t); err != nil {
		return err
	}
	if o.phase == v1alpha1.TaskSucceeded {
		note, err := f.converse(ctx, t, left.result)
		if err != nil {
			return err
		}
		if note != "" {
			o.message += "; " + note
		}
	}
	events := first(t, append(left.events, phaseChanged(t, t.Status.Phase, o.phase, o.message), terminalEvent(t, o))...)
	stands, err := f.terminal(ctx, t, events...)
	if err != nil {
		return err
	}
	o = agreeing(o, &stands)
	at := metav1.NewTime(f.now())
	if !stands.CreatedAt.IsZero() {
		at = metav1.NewTime(stands.CreatedAt.Time)
	}
	usage := left.usage.Sum()
	if err := f.release(ctx, t, usage); err != nil {
		return err
	}
	if t.Status.Attempts > 0 {
		if err := f.touchAgent(ctx, t, at); err != nil {
			return err
		}
	}
	notParked(t, "the run is over")
	waitsNoMore(t, "the task is over")
	waitsForNoChild(t, v1alpha1.ReasonJobEnded, "the task is over")
	iteratesNoMore(t)
	setTerminal(&t.Status, t.Generation, o, at)
	t.Status.Usage = usage
	if provider, model := left.usage.Answered(); provider != "" {
		t.Status.Provider, t.Status.Model = provider, model
	}
	if left.submitted {
		t.Status.ResultRef = &v1alpha1.TaskResultReference{Available: true}
	}
	return nil
}

// remains is what a task that is over has left.
type remains struct {
	usage     trace.Usage
	result    string
	submitted bool
	// events settle the approvals that nobody decided.
	events []v1alpha1.ExecutionEvent
}

// look reads, in parallel, what the task has left, and makes sure that the cached task is not older than the
// server's. A task that had no attempt has left nothing.
func (f *finisher) look(ctx context.Context, t *v1alpha1.Task, o outcome) (remains, error) {
	var left remains
	if t.Status.Attempts == 0 {
		return left, f.fresh(ctx, t)
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return f.fresh(ctx, t) })
	all.Go(func() (err error) {
		left.usage, err = f.usage(ctx, t)
		return err
	})
	all.Go(func() (err error) {
		left.result, left.submitted, err = f.result(ctx, t)
		return err
	})
	all.Go(func() (err error) {
		if o.phase != v1alpha1.TaskSucceeded { // a worker that succeeded has ended its calls
			if err := f.lost(ctx, t); err != nil { // first, because the end of an approved call settles its approval, too
				return err
			}
		}
		left.events, err = f.unsettled(ctx, t, cmp.Or(o.message, "the task is over"))
		return err
	})
	err := all.Wait() // before left is read
	return left, err
}

func terminalEvent(t *v1alpha1.Task, o outcome) v1alpha1.ExecutionEvent {
	content := map[string]any{"attempts": t.Status.Attempts}
	if o.reason != "" {
		content["reason"] = o.reason
	}
	how := endingOf(o.phase)
	e := event(t, how.event, keyTerminal, o.message, content)
	e.Severity = how.severity
	return e
}

func setTerminal(s *v1alpha1.TaskStatus, generation int64, o outcome, at metav1.Time) {
	s.Phase = o.phase
	s.Message = o.message
	s.ObservedGeneration = generation
	s.NextAttemptTime = nil
	s.NextScheduleTime = nil
	if s.CompletionTime == nil {
		s.CompletionTime = &at
	}
	setEnd(s, generation, o)
	if meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionJobCreated) != nil {
		reason, message := v1alpha1.ReasonJobEnded, "the run is over"
		if o.phase == v1alpha1.TaskFailed && isReason(o.reason) {
			reason, message = o.reason, o.message
		}
		setCondition(s, generation, v1alpha1.ConditionJobCreated, metav1.ConditionFalse, reason, message)
	}
}

// isReason reports whether a word can be the reason of a condition. Some reasons come from what
// a run left, which may be anything.
func isReason(word string) bool {
	for i, c := range word {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return word != "" && len(word) <= 256
}

// conditionMessageLimit is the longest message of a condition that the API accepts, in bytes.
const conditionMessageLimit = 32768

func setCondition(s *v1alpha1.TaskStatus, generation int64, typ string, status metav1.ConditionStatus, reason, message string) {
	if len(message) > conditionMessageLimit {
		message = message[:conditionMessageLimit/2]
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: typ, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
	})
}
