// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"math"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/readcache"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// Limits is the Meter that refuses requests of chats and of the vendors' APIs: by rateLimit of Providers and Agents, whose
// turns they share with tasks, and by Budgets. What a Budget reserves is durable before the request is sent. A caller has one place
// in the queue of a rate limit, as a task has. A client that states no limit of the output is expected to use that of its Agent, or
// the default of plan; what exceeds it is spent all the same. A warning of a Budget is logged, because there is no stream of events
// that could have it.
type Limits struct {
	// Gate is also that of tasks.
	Gate     *modelgate.Gate
	accounts *spending.Store
	clock    clock.PassiveClock
	ends     *later.Queue
	budgets  readcache.Cache[string, []v1alpha1.Budget] // by namespace
	from     LimitReaders
}

// LimitReaders read what limits requests, in the context's namespace. Errors are API errors.
type LimitReaders struct {
	Budgets  func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error)
	Provider func(ctx context.Context, name string) (*v1alpha1.Provider, error)
	Agent    func(ctx context.Context, name string) (*v1alpha1.Agent, error)
}

var _ Meter = (*Limits)(nil)

// NewLimits returns limits that are read from where from says. ends settles requests. changed is that of Options;
// if it is nil, Budgets are read for each request. shares divides rate limits among namespaces.
func NewLimits(from LimitReaders, accounts *spending.Store, c clock.PassiveClock, shares fairshare.Shares, ends *later.Queue, changed func(resource string) (uint64, bool)) *Limits {
	l := &Limits{Gate: modelgate.New(c, shares), accounts: accounts, clock: c, ends: ends, from: from}
	l.budgets.Clock = c
	l.budgets.Changed = readcache.ChangesOf(changed, v1alpha1.Resource("budgets").String())
	return l
}

// unlimited is a request that is not sent.
type unlimited struct{}

// End does nothing.
func (unlimited) End(Ended) {}

// Start lets a request begin, or refuses it with an API error: 429 with the time after which to try again, or 403 if it
// never fits.
func (l *Limits) Start(ctx context.Context, a Asked) (Measurement, error) {
	if a.PassedOver {
		return unlimited{}, nil
	}
	inside := request.WithNamespace(request.WithUser(ctx, nil), a.Namespace) // the server reads for itself
	provider, err := a.Read, error(nil)
	if provider == nil {
		provider, err = l.from.provider(inside, a.Provider)
	}
	if err != nil {
		return nil, err
	}
	rates, err := l.from.rates(inside, a, provider)
	if err != nil {
		return nil, err
	}
	budgets, err := l.budgets.Get(ctx, a.Namespace, func(ctx context.Context) ([]v1alpha1.Budget, error) { return l.from.Budgets(ctx, a.Namespace) })
	if err != nil {
		return nil, err
	}
	m := &limited{
		log: klog.FromContext(ctx), Limits: l, asked: a, call: string(uuid.NewUUID()), caller: types.UID("caller/" + a.Namespace + "/" + a.Caller.GetName()),
		charges: budget.Charges(budgets, budget.Use{
			Namespace: a.Namespace, Agent: a.Agent, Provider: a.Provider, User: a.Caller.GetName(), Groups: a.Caller.GetGroups(),
		}),
	}
	undo := func() {}
	if m.rated = len(rates) > 0; m.rated {
		undo, err = l.Gate.Begin(ctx, modelgate.Request{Task: m.caller, Served: true, Namespace: a.Namespace, Call: m.call, MaxTokens: a.MaxTokens, Input: llm.LikelyInput(a.MaxInput), Limits: rates})
		if wait, ok := errors.AsType[*modelgate.WaitError](err); ok {
			return nil, limitRefused(v1alpha1.ReasonRateLimited, wait.Error(), http.StatusTooManyRequests, wait.RetryAfter())
		}
		if err != nil {
			return nil, err
		}
	}
	if len(m.charges) == 0 {
		return m, nil
	}
	err = l.accounts.Commit(engine.Grow, l.accounts.Begin(m.call, m.charges, m.need(provider)))
	if err == nil {
		return m, nil
	}
	undo()
	if unpriced, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return nil, limitRefused(v1alpha1.ReasonBudgetUnpriced, unpriced.Error(), http.StatusForbidden, 0)
	}
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		code := http.StatusTooManyRequests
		if spent.Asked > spent.Limit {
			code = http.StatusForbidden
		}
		return nil, limitRefused(v1alpha1.ReasonBudgetExhausted, spent.Error(), code, int(math.Ceil(spent.Renews.Sub(l.clock.Now()).Seconds())))
	}
	return nil, startRefused(err)
}
