// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelrequest decides whether model requests may be made, and counts what they use: those of tasks, of chats and of the
// vendors' APIs that the server offers.
//
//	modelrequest.go  one request: what is stored about it, and the decision
//	task.go          requests of tasks, which begin and end with events
//	said.go          what the stream of a task says of limits, and the refusals of tasks
//	spent.go         what tasks have used of their token budgets
//	cooling.go       which Providers fail
//	caller.go        requests of chats and of the vendors' APIs, and their refusals
//
// # The path of a request
//
// What is stored about a request (ask) is read once: its task with the tasks above it, or its caller, its Agent and its Provider; the
// Budgets of its namespace are read once for each change to Budgets. Then it is decided, for everybody in the same way:
//
//  1. The rate limits of the Agent and the Provider, and the token budgets of the task and of the tasks above it, let the request begin
//     (begin; package modelgate), or refuse it. Nothing is durable yet.
//  2. The commit that stores the start reserves what the request may use at most in all Budgets that select it (claim; package
//     storage/spending), or refuses it, and the first step is undone.
//  3. The end settles both.
//
// The start of a task's request is the append of ModelRequestStarted, because workers wait for it before they send the request. The
// start of a caller's request is Start of a models.Meter. What differs is how a refusal is said:
//
//	                     a task                              a caller
//	a rate               429, and an event                   429
//	a token budget       403                                 none applies
//	a Budget             403, and an event                   429 until it begins again, 403 if the request never fits
//	no price             403, and an event                   403
//	a warning            an event                            a line in the server's log
//
// The worker of a task asks again after a 429, and the timeout of its run goes on meanwhile. A 403 has a reason, and ends the run
// without another attempt. A client is told when to ask again.
package modelrequest

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/readcache"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// Readers read what is stored, in the context's namespace, and change the status of a Provider. Errors are API errors.
type Readers struct {
	Task           func(ctx context.Context, name string) (*v1alpha1.Task, error)
	Agent          stored.Agents
	Provider       func(ctx context.Context, name string) (*v1alpha1.Provider, error)
	UpdateProvider func(ctx context.Context, name string, mutate func(*v1alpha1.Provider) error) (*v1alpha1.Provider, error)
	// Budgets returns the Budgets of a namespace.
	Budgets func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error)
}

// Options are what model requests need.
type Options struct {
	Readers

	Clock clock.PassiveClock
	// Shares divides rate limits among namespaces. The zero value gives all the same.
	Shares fairshare.Shares
	// Changed returns the revision of the newest change to a resource of this server, or reports false if that is not known. If it is
	// nil, Budgets are read for each request.
	Changed func(resource string) (revision uint64, known bool)
	// Accounts are those of Budgets, and Ends settles requests. Only callers need them: what tasks do is stored by the log of events.
	Accounts *spending.Store
	Ends     *later.Queue
}

// Requests decides about the model requests of a server. It is a models.Meter for those of callers; see Tasks for those of tasks.
type Requests struct {
	o       Options
	gate    *modelgate.Gate
	budgets readcache.Cache[string, []v1alpha1.Budget] // by namespace
}

// New returns what decides about the model requests of a server.
func New(o Options) *Requests {
	r := &Requests{o: o, gate: modelgate.New(o.Clock, o.Shares)}
	r.budgets.Clock, r.budgets.Changed = o.Clock, readcache.ChangesOf(o.Changed, v1alpha1.Resource("budgets").String())
	return r
}

// ask is a model request with all that is stored about it.
type ask struct {
	// Request is what the gate needs. Its Input follows from maxInput.
	modelgate.Request

	// use is what Budgets select the request by. Its Provider has the prices of the model; nil if there is none.
	use      budget.Use
	provider *v1alpha1.Provider
	model    string
	// maxInput is how many tokens the input has at most. outside returns how many more may come from outside of the request, which
	// only Budgets reserve; nil if none do.
	maxInput int64
	outside  func() int64
}

// limited reports whether the gate has to do with the request.
func (q *ask) limited() bool { return len(q.Limits)+len(q.Budgets) > 0 }

// begin reserves what the limits of a request need in the gate. undo takes it back. Errors are those of modelgate.Gate.Begin.
func (r *Requests) begin(ctx context.Context, q *ask) (undo func(), err error) {
	if !q.limited() {
		return func() {}, nil
	}
	q.Input = llm.LikelyInput(q.maxInput)
	return r.gate.Begin(ctx, q.Request)
}

// claim returns what a request counts towards, by all Budgets of its namespace, and what it may use at most.
func (r *Requests) claim(all []v1alpha1.Budget, q *ask) spending.Claim {
	c := spending.Claim{Charges: budget.Charges(all, q.use)}
	if len(c.Charges) == 0 {
		return c
	}
	var price *usage.Price
	if q.provider != nil {
		price = usage.InForce(q.provider.Spec.Prices, q.model, r.o.Clock.Now())
	}
	input := q.maxInput
	if q.outside != nil {
		input += q.outside()
	}
	c.Need = budget.NeedOf(input, q.MaxTokens, price)
	c.Need.Of = "model " + q.model + " of Provider " + q.use.Provider
	return c
}

// budgetsOf returns the Budgets of a namespace, which must not be changed.
func (r *Requests) budgetsOf(ctx context.Context, namespace string) ([]v1alpha1.Budget, error) {
	return r.budgets.Get(ctx, namespace, func(ctx context.Context) ([]v1alpha1.Budget, error) { return r.o.Budgets(ctx, namespace) })
}

// unlessGone returns what was read, or nil if it was deleted.
func unlessGone[T any](o *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it was deleted
	}
	return o, err
}
