// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelrequest decides whether the model requests of tasks may be made, and counts what they use: by the rate limits of
// Providers and Agents, the token budgets of tasks and of those above them, and Budgets. It also notes which Providers fail.
//
// The append of ModelRequestStarted is where limits apply, because workers wait for it before they send the request. A start beyond a
// rate is refused with 429 and Retry-After: the worker asks again, and the timeout of its run goes on meanwhile. A start that does not
// fit a budget is refused with 403 and a reason, which ends the run without another attempt.
package modelrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// Options are what model requests need. All fields are required.
type Options struct {
	Tasks  stored.Tasks
	Agents stored.Agents
	Log    *eventlog.Log
	Trees  *tree.Trees
	Clock  clock.PassiveClock
	// Gate applies rate limits and token budgets.
	Gate *modelgate.Gate
	// Budgets returns the Budgets of a namespace.
	Budgets func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error)
	// Provider reads a Provider in the context's namespace, and UpdateProvider changes its status. Errors are API errors.
	Provider       func(ctx context.Context, name string) (*v1alpha1.Provider, error)
	UpdateProvider func(ctx context.Context, name string, mutate func(*v1alpha1.Provider) error) (*v1alpha1.Provider, error)
}

// Requests decides about the model requests of tasks.
type Requests struct {
	o       Options
	cooling cooling
}

// New returns what decides about the model requests of tasks.
func New(o Options) *Requests { return &Requests{o: o} }

// Begin lets the model requests begin whose starts are among the events, or refuses all events with an API error. The events are to be
// appended with the context next. Call end with the stored events, or with none if they were not stored.
func (r *Requests) Begin(ctx context.Context, t *v1alpha1.Task, events eventlog.Sanitized) (next context.Context, end func(stored []*v1alpha1.ExecutionEvent), err error) {
	list := startsAndEnds(events)
	claims, err := r.claims(ctx, t, list)
	if err != nil {
		return nil, nil, err
	}
	settle, err := r.begin(ctx, t, list)
	if err != nil {
		return nil, nil, err
	}
	next = ctx
	if claims != nil {
		next = eventlog.WithNote(ctx, claims)
	}
	return next, func(stored []*v1alpha1.ExecutionEvent) {
		settle(stored)
		if len(stored) > 0 {
			r.warn(next, t, claims)
		}
	}, nil
}

// Refusal returns the API error for events that a Budget refused, and records the refusal; nil if err is about something else.
func (r *Requests) Refusal(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, err error) error {
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		return r.exhausted(ctx, t, events, spent)
	}
	if e, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return r.unpriced(ctx, t, events, e)
	}
	return nil
}

// Forget forgets the requests of a task that has ended or is gone.
func (r *Requests) Forget(uid types.UID) { r.o.Gate.Forget(uid) }

// call is what a model event says about its request.
type call struct {
	provider, model string
	// id identifies the request within an attempt.
	id string
	// input is the number of tokens of the input; nil if it is not known.
	input *int64
	// most is how many tokens the input may have at most, as the worker says.
	most int64
	// out is what is known of its end.
	out usage.Outcome
	// class is how the request failed, empty if it did not. retried is set if its worker sends it again, and retryAfter
	// is the pause that the vendor asked for.
	class      llm.Class
	retried    bool
	retryAfter time.Duration
}

// requestEvent is an event that begins or ends a model request.
type requestEvent struct {
	*v1alpha1.ExecutionEvent

	call call
	// at is its place among the events of the append.
	at int
}

// requestEvents returns those of the events that begin or end model requests.
func startsAndEnds(events eventlog.Sanitized) []requestEvent {
	var list []requestEvent
	for i, e := range events.Events() {
		switch e.Type {
		case v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed:
			list = append(list, requestEvent{e, callOf(e), i})
		}
	}
	return list
}

// callOf reads a sanitized event.
func callOf(e *v1alpha1.ExecutionEvent) call {
	var c struct {
		RetryInMs, RetryAfterMs int64
		MaxInputTokens          int64
		ErrorClass              llm.Class
		Unsent                  bool
		CacheWriteInputTokens   *int64
	}
	if e.Content != nil {
		_ = json.Unmarshal(e.Content.Raw, &c) // content of another form has none of these
	}
	call := call{provider: e.Provider, model: e.Model, id: spending.Call(e), input: e.InputTokens, most: min(max(0, c.MaxInputTokens), maxInput)}
	if e.Type == v1alpha1.EventModelRequestFailed {
		call.class, call.retried = c.ErrorClass, c.RetryInMs > 0
		call.retryAfter = time.Duration(min(max(c.RetryAfterMs, 0), longestCoolDown.Milliseconds())) * time.Millisecond
		if call.class == "" {
			call.class = llm.ClassInvalidRequest // a failure without a class says nothing of the Provider
		}
	}
	call.out = usage.Outcome{Counts: usage.Counts{
		InputTokens: e.InputTokens, OutputTokens: e.OutputTokens, CachedInputTokens: e.CachedInputTokens, CacheWriteInputTokens: c.CacheWriteInputTokens,
	}, Refused: e.Type == v1alpha1.EventModelRequestFailed && (c.ErrorClass.Refused() || c.Unsent)}
	return call
}

// begin lets requests begin by the gate, or refuses all events. The caller calls settle with the stored events, or with none if they could not be stored.
func (r *Requests) begin(ctx context.Context, t *v1alpha1.Task, events []requestEvent) (settle func(stored []*v1alpha1.ExecutionEvent), err error) {
	var undo []func()
	undoAll := func() {
		for _, f := range undo {
			f()
		}
	}
	for _, e := range events {
		if e.Type == v1alpha1.EventModelRequestStarted {
			back, err := r.beginOne(ctx, t, e)
			if err != nil {
				undoAll()
				return nil, err
			}
			undo = append(undo, back)
		}
	}
	return func(stored []*v1alpha1.ExecutionEvent) {
		if len(stored) == 0 {
			undoAll()
			return
		}
		for _, e := range events {
			if e.Type == v1alpha1.EventModelRequestStarted {
				r.cooling.begin(e.call.provider, t.UID, e.call.id)
			}
		}
		for _, e := range events {
			if e.Type != v1alpha1.EventModelRequestStarted {
				r.endOne(ctx, t, e.call, stored[e.at].Seq)
				r.cool(ctx, t, e.call)
			}
		}
	}, nil
}

func (r *Requests) beginOne(ctx context.Context, t *v1alpha1.Task, e requestEvent) (undo func(), err error) {
	q, err := r.limits(ctx, t, e.call)
	if err != nil {
		return nil, err
	}
	if len(q.Limits)+len(q.Budgets) == 0 {
		return func() {}, nil
	}
	q.Key = e.DedupKey
	undo, err = r.o.Gate.Begin(ctx, q)
	if wait, ok := errors.AsType[*modelgate.WaitError](err); ok {
		r.noteWait(ctx, t, e, wait)
		return nil, apierrors.NewTooManyRequests(wait.Error(), wait.RetryAfter())
	}
	if spent, ok := errors.AsType[*modelgate.BudgetError](err); ok {
		refused := apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, spent)
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: v1alpha1.ReasonTokenBudgetExhausted, Message: spent.Error(), Field: "spec.ai.tokenBudget",
		})
		return nil, refused
	}
	return undo, err
}

// endOne settles a request whose end is stored as the event seq.
func (r *Requests) endOne(ctx context.Context, t *v1alpha1.Task, c call, seq int64) {
	ended := modelgate.Ended{Call: modelgate.Call{Task: t.UID, ID: c.id}, Seq: seq, Used: c.out.Used(), Input: c.input}
	if r.o.Gate.End(ended) {
		return
	}
	q, err := r.limits(ctx, t, c)
	if err != nil || len(q.Limits)+len(q.Budgets) == 0 {
		return // nothing limits the task, or what limits it does not exist any more
	}
	r.o.Gate.Late(q, ended)
}

// noteWait adds an event that says what the request waits for, once for each request. It is best effort.
func (r *Requests) noteWait(ctx context.Context, t *v1alpha1.Task, e requestEvent, wait *modelgate.WaitError) {
	note := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, "platform:rate:"+e.DedupKey, wait.Error(), map[string]any{
		"reason": v1alpha1.ReasonRateLimited, "of": wait.Limit.Of, "provider": e.call.provider, "retryInMs": wait.After.Milliseconds(),
	})
	if _, err := r.o.Log.Append(ctx, stored.Stream(t), []*v1alpha1.ExecutionEvent{note}); err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot record that a model request waits", "task", klog.KObj(t), "err", err)
	}
}

// limits returns what limits a request of the task, by what is stored about the task and not by what its worker
// says. A worker that names a Provider which the task does not use is counted at the task's own.
func (r *Requests) limits(ctx context.Context, t *v1alpha1.Task, c call) (modelgate.Request, error) {
	q := modelgate.Request{Task: t.UID, Namespace: t.Namespace, Call: c.id, Input: llm.LikelyInput(c.most)}
	a, err := r.o.Agents.Of(ctx, t)
	if err != nil {
		return q, err
	}
	if a != nil {
		q.Limits = modelgate.LimitOf(q.Limits, "Agent", a.Namespace, a.Name, a.Spec.RateLimit)
	}
	q.MaxTokens = plan.MaxTokens(t, a)
	p, err := r.providerOf(ctx, plan.UsesOf(t, a), c.provider)
	if err != nil {
		return q, err
	}
	if p != nil {
		q.Limits = modelgate.LimitOf(q.Limits, "Provider", p.Namespace, p.Name, p.Spec.RateLimit)
	}
	q.Budgets, err = r.budgets(ctx, t)
	return q, err
}

// providerOf returns the Provider of that name which the task uses, or else its first one; nil if there is none.
func (r *Requests) providerOf(ctx context.Context, uses *plan.Uses, name string) (*v1alpha1.Provider, error) {
	if uses.Provider == nil {
		return nil, nil //nolint:nilnil // nothing limits the request
	}
	first := uses.Provider.Ref.NamespacedName
	if uses.Provider.Type != "" {
		first.Name = name
	}
	key := first
	for _, f := range uses.Fallbacks {
		if f.Provider != nil && f.Provider.Name == name && first.Name != name {
			key = f.Provider.NamespacedName
		}
	}
	p, err := r.o.Provider(request.WithNamespace(ctx, key.Namespace), key.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // it was deleted
	case err != nil:
		return nil, err
	case uses.Provider.Type != "" && key == first && p.Spec.Type != uses.Provider.Type:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("content.provider: %q: must be a Provider that the task uses", name))
	}
	return p, nil
}
