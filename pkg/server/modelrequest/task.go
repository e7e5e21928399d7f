// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// Tasks decides about the model requests of tasks.
type Tasks struct {
	all     *Requests
	log     *eventlog.Log
	trees   *tree.Trees
	cooling cooling
}

// Tasks returns what decides about the model requests of tasks, by the same limits as about all others. log has their events, and
// trees says which tasks are below one.
func (r *Requests) Tasks(log *eventlog.Log, trees *tree.Trees) *Tasks {
	return &Tasks{all: r, log: log, trees: trees}
}

// Begin lets the model requests begin whose starts are among the events, or refuses all events with an API error. The events are to be
// appended with the context next. Call end with the stored events, or with none if they were not stored.
func (r *Tasks) Begin(ctx context.Context, t *v1alpha1.Task, events eventlog.Sanitized) (next context.Context, end func(stored []*v1alpha1.ExecutionEvent), err error) {
	list := r.startsAndEnds(ctx, t, events)
	claims, err := r.claims(ctx, t, list)
	if err != nil {
		return nil, nil, err
	}
	undo, err := r.begin(ctx, t, list)
	if err != nil {
		return nil, nil, err
	}
	if next = ctx; claims != nil {
		next = eventlog.WithNote(ctx, claims)
	}
	return next, func(stored []*v1alpha1.ExecutionEvent) {
		if len(stored) == 0 {
			undo()
			return
		}
		r.settle(ctx, t, list, stored)
		r.warn(next, t, claims)
	}, nil
}

// Forget forgets the requests of a task that has ended or is gone.
func (r *Tasks) Forget(uid types.UID) { r.all.gate.Forget(uid) }

// requestEvent is an event that begins or ends a model request.
type requestEvent struct {
	*v1alpha1.ExecutionEvent

	call call
	// at is its place among the events of the append.
	at int
	// ask reads what is stored about its request, once.
	ask func() (*ask, error)
}

// startsAndEnds returns those of the events that begin or end model requests. The Agent of the task and the tasks above it are read
// at most once for all of them.
func (r *Tasks) startsAndEnds(ctx context.Context, t *v1alpha1.Task, events eventlog.Sanitized) []requestEvent {
	if !slices.ContainsFunc(events.Events(), startsOrEnds) {
		return nil
	}
	var list []requestEvent
	agent := sync.OnceValues(func() (*v1alpha1.Agent, error) { return r.all.o.Agent.Of(ctx, t) })
	above := sync.OnceValues(func() ([]*v1alpha1.Task, error) { return r.above(ctx, t) })
	for i, e := range events.Events() {
		if startsOrEnds(e) {
			c := callOf(e)
			list = append(list, requestEvent{e, c, i, sync.OnceValues(func() (*ask, error) { return r.ask(ctx, t, c, agent, above) })})
		}
	}
	return list
}

func startsOrEnds(e *v1alpha1.ExecutionEvent) bool { return event.ModelRequest(e.Type) }

// call is what a model event says about its request.
type call struct {
	provider, model string
	// id identifies the request within an attempt.
	id string
	// input is the number of tokens of the input; nil if it is not known.
	input *int64
	// most is how many tokens the input may have at most, as the worker says, and mostOut the output; see maxTokens.
	most, mostOut int64
	// out is what is known of its end.
	out usage.Outcome
	// class is how the request failed, empty if it did not. retried is set if its worker sends it again, and retryAfter
	// is the pause that the vendor asked for.
	class      llm.Class
	retried    bool
	retryAfter time.Duration
}

// callOf reads a sanitized event.
func callOf(e *v1alpha1.ExecutionEvent) call {
	var c struct {
		RetryInMs, RetryAfterMs int64
		MaxInputTokens          int64
		MaxOutputTokens         int64
		ErrorClass              llm.Class
		Unsent                  bool
		CacheWriteInputTokens   *int64
	}
	if e.Content != nil {
		_ = json.Unmarshal(e.Content.Raw, &c) // content of another form has none of these
	}
	call := call{provider: e.Provider, model: e.Model, id: spending.Call(e), input: e.InputTokens, most: min(max(0, c.MaxInputTokens), maxInput), mostOut: min(max(0, c.MaxOutputTokens), maxInput)}
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

// claims returns what the model requests among the events count towards; nil if the namespace has no Budgets.
func (r *Tasks) claims(ctx context.Context, t *v1alpha1.Task, events []requestEvent) (*spending.Claims, error) {
	if len(events) == 0 {
		return nil, nil //nolint:nilnil // nothing counts
	}
	budgets, err := r.all.budgetsOf(ctx, t.Namespace)
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	of := map[string]spending.Claim{}
	for _, e := range events {
		q, err := e.ask()
		if err != nil {
			return nil, err
		}
		c := r.all.claim(budgets, q)
		c.Used = &e.call.out
		of[e.call.id] = c
	}
	return &spending.Claims{Of: of, Attempt: int64(t.Status.Attempts)}, nil
}

// begin lets the requests begin whose starts are among the events, or none of them. undo takes all back.
func (r *Tasks) begin(ctx context.Context, t *v1alpha1.Task, events []requestEvent) (undo func(), err error) {
	var begun []func()
	undo = func() {
		for _, back := range begun {
			back()
		}
	}
	for _, e := range events {
		if e.Type != v1alpha1.EventModelRequestStarted {
			continue
		}
		q, err := e.ask()
		if err != nil {
			undo()
			return nil, err
		}
		q.Key = e.DedupKey
		back, err := r.all.begin(ctx, q)
		if err != nil {
			undo()
			return nil, r.refused(ctx, t, e, err)
		}
		begun = append(begun, back)
	}
	return undo, nil
}

// settle notes what the stored events say of requests.
func (r *Tasks) settle(ctx context.Context, t *v1alpha1.Task, events []requestEvent, stored []*v1alpha1.ExecutionEvent) {
	for _, e := range events {
		if e.Type == v1alpha1.EventModelRequestStarted {
			r.cooling.begin(e.call.provider, t.UID, e.call.id)
		}
	}
	for _, e := range events {
		if e.Type == v1alpha1.EventModelRequestStarted {
			continue
		}
		ended := modelgate.Ended{Call: modelgate.Call{Task: t.UID, ID: e.call.id}, Seq: stored[e.at].Seq, Used: e.call.out.Used(), Input: e.call.input}
		if !r.all.gate.End(ended) {
			// Without an error: otherwise what limits the task does not exist any more.
			if q, err := e.ask(); err == nil && q.limited() {
				r.all.gate.Late(q.Request, ended)
			}
		}
		r.cool(ctx, t, e)
	}
}

// maxInput bounds what a worker may say about the size of a request. It is more than any request can have.
const maxInput = 1 << 30

// ask reads what is stored about a request of the task, and goes by that, not by what its worker says. A worker that names a Provider
// which the task does not use is counted at the task's own. A delegated task is work for whoever asked for the root of its tree, and
// has the labels of the tasks above it.
func (r *Tasks) ask(ctx context.Context, t *v1alpha1.Task, c call, agentOf func() (*v1alpha1.Agent, error), aboveIt func() ([]*v1alpha1.Task, error)) (*ask, error) {
	a, err := agentOf()
	if err != nil {
		return nil, err
	}
	p, err := r.providerOf(ctx, t, a, c.provider)
	if err != nil {
		return nil, err
	}
	above, err := aboveIt()
	if err != nil {
		return nil, err
	}
	q := &ask{
		Request: modelgate.Request{Task: t.UID, Namespace: t.Namespace, Call: c.id, MaxTokens: maxTokens(t, a, c)}, maxInput: c.most, model: c.model, provider: p,
		use: budget.Use{Namespace: t.Namespace, Labels: map[string]string{}, User: t.Annotations[v1alpha1.AnnotationRequestedBy], Groups: requester.GroupsOf(t)},
	}
	if a != nil {
		q.use.Agent = within(t.Namespace, a.Namespace, a.Name)
		q.Limits = modelgate.LimitOf(q.Limits, "Agent", a.Namespace, a.Name, a.Spec.RateLimit)
	}
	if p != nil {
		q.use.Provider = within(t.Namespace, p.Namespace, p.Name)
		q.Limits = modelgate.LimitOf(q.Limits, "Provider", p.Namespace, p.Name, p.Spec.RateLimit)
	}
	for _, one := range append([]*v1alpha1.Task{t}, above...) {
		maps.Copy(q.use.Labels, one.Labels)
		if ai := one.Spec.AI; ai != nil && ai.TokenBudget != nil {
			q.Budgets = append(q.Budgets, modelgate.Budget{Task: one.UID, Name: one.Name, Most: *ai.TokenBudget, Used: func(ctx context.Context) (*modelgate.Spent, error) {
				return r.spentBelow(ctx, one)
			}})
		}
	}
	return q, nil
}

// within names an object as seen from a namespace.
func within(namespace, of, name string) string {
	if of == namespace {
		return name
	}
	return of + "/" + name
}

// maxTokens returns how many tokens the output of a request may have. Of a coding agent this server says so itself.
func maxTokens(t *v1alpha1.Task, a *v1alpha1.Agent, c call) int64 {
	if t.Spec.Type == v1alpha1.TaskTypeAgent && c.mostOut > 0 {
		return c.mostOut
	}
	return plan.MaxTokens(t, a)
}

// providerOf returns the Provider of that name which the task uses, or else its first one; nil if there is none. The Provider of a
// coding agent's request is the one that this server says it asked.
func (r *Tasks) providerOf(ctx context.Context, t *v1alpha1.Task, a *v1alpha1.Agent, name string) (*v1alpha1.Provider, error) {
	if t.Spec.Type == v1alpha1.TaskTypeAgent && a != nil {
		return unlessGone(r.all.o.Provider(request.WithNamespace(ctx, a.Namespace), name))
	}
	uses := plan.UsesOf(t, a)
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
	p, err := unlessGone(r.all.o.Provider(request.WithNamespace(ctx, key.Namespace), key.Name))
	if err == nil && p != nil && uses.Provider.Type != "" && key == first && p.Spec.Type != uses.Provider.Type {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("content.provider: %q: must be a Provider that the task uses", name))
	}
	return p, err
}
