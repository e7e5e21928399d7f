// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// Limits is the Meter that refuses requests of chats and of the vendors' APIs: by rateLimit of Providers and Agents, whose
// turns they share with tasks, and by Budgets. What a Budget reserves is durable before the request is sent.
type Limits struct {
	// Gate is also that of tasks.
	Gate     *modelgate.Gate
	accounts *spending.Store
	clock    clock.PassiveClock

	mu sync.Mutex
	LimitReaders
}

// LimitReaders read what limits requests, in the context's namespace. Errors are API errors.
type LimitReaders struct {
	Budgets  func(ctx context.Context, namespace string) ([]v1alpha1.Budget, error)
	Provider func(ctx context.Context, name string) (*v1alpha1.Provider, error)
	Agent    func(ctx context.Context, name string) (*v1alpha1.Agent, error)
}

var _ Meter = (*Limits)(nil)

// NewLimits returns limits that refuse everything until Read is called.
func NewLimits(accounts *spending.Store, c clock.PassiveClock) *Limits {
	return &Limits{Gate: modelgate.New(c), accounts: accounts, clock: c}
}

// Read sets from where limits are read.
func (l *Limits) Read(from LimitReaders) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.LimitReaders = from
}

// Start lets a request begin, or refuses it with an API error: 429 with the time after which to try again, or 403 if it
// never fits.
func (l *Limits) Start(ctx context.Context, a Asked) (Measurement, error) {
	l.mu.Lock()
	from := l.LimitReaders
	l.mu.Unlock()
	if from.Budgets == nil {
		return nil, apierrors.NewServiceUnavailable("limits of models are not known yet")
	}
	inside := request.WithNamespace(request.WithUser(ctx, nil), a.Namespace) // the server reads for itself
	rates, err := from.rates(inside, a)
	if err != nil {
		return nil, err
	}
	budgets, err := from.Budgets(ctx, a.Namespace)
	if err != nil {
		return nil, err
	}
	m := &limited{
		Limits: l, asked: a, call: string(uuid.NewUUID()), caller: types.UID("caller/" + a.Namespace + "/" + a.Caller.GetName()),
		charges: budget.Charges(budgets, budget.Use{
			Namespace: a.Namespace, Agent: a.Agent, Provider: a.Provider, User: a.Caller.GetName(), Groups: a.Caller.GetGroups(),
		}),
	}
	undo := func() {}
	if m.rated = len(rates) > 0; m.rated {
		undo, err = l.Gate.Begin(modelgate.Request{Task: m.caller, Call: m.call, MaxTokens: a.MaxTokens, Limits: rates})
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
	need := min(a.MaxTokens, math.MaxInt64/2) + min(a.MaxInput, math.MaxInt64/2)
	err = l.accounts.Commit(engine.Grow, l.accounts.Begin(m.call, m.charges, need))
	if err == nil {
		return m, nil
	}
	undo()
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		code := http.StatusTooManyRequests
		if spent.Asked > spent.Limit {
			code = http.StatusForbidden
		}
		return nil, limitRefused(v1alpha1.ReasonBudgetExhausted, spent.Error(), code, int(math.Ceil(spent.Renews.Sub(l.clock.Now()).Seconds())))
	}
	return nil, err
}

// rates returns the rate limits of a request.
func (r LimitReaders) rates(ctx context.Context, a Asked) ([]modelgate.Limit, error) {
	var all []modelgate.Limit
	p, err := r.Provider(ctx, a.Provider)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		all = modelgate.LimitOf(all, "Provider", p.Namespace, p.Name, p.Spec.RateLimit)
	}
	if a.Agent == "" {
		return all, nil
	}
	agent, err := r.Agent(ctx, a.Agent)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil {
		all = modelgate.LimitOf(all, "Agent", agent.Namespace, agent.Name, agent.Spec.RateLimit)
	}
	return all, nil
}

// limitRefused returns the API error of a refusal.
func limitRefused(reason, message string, code, after int) error {
	e := apierrors.NewTooManyRequests(message, max(1, after))
	if e.ErrStatus.Code = int32(code); code == http.StatusForbidden {
		e.ErrStatus.Reason, e.ErrStatus.Details.RetryAfterSeconds = metav1.StatusReasonForbidden, 0
	}
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(reason), Message: message}}
	return e
}

// LimitReason returns the reason, RateLimited or BudgetExhausted, if Limits refused a request; otherwise an empty string.
func LimitReason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, c := range status.Status().Details.Causes {
		if c.Type == v1alpha1.ReasonBudgetExhausted || c.Type == v1alpha1.ReasonRateLimited {
			return string(c.Type)
		}
	}
	return ""
}

// limited is a request that began.
type limited struct {
	*Limits

	asked   Asked
	call    string // made here, because clients choose the IDs of their requests
	caller  types.UID
	charges []budget.Charge
	rated   bool
}

// End settles the request. What it used stays estimated if its vendor did not report it.
func (m *limited) End(e Ended) {
	var used *int64
	if u := e.Usage; u.Known() {
		used = new(max(0, *u.InputTokens) + max(0, *u.OutputTokens))
	}
	if m.rated {
		m.Gate.End(m.caller, m.call, used, e.Usage.InputTokens)
	}
	if len(m.charges) == 0 {
		return
	}
	if err := m.accounts.Commit(engine.Upkeep, m.accounts.End(m.call, used, m.warn)); err != nil {
		klog.ErrorS(err, "Cannot settle what a model request spent; the next start of the server gives it back", "namespace", m.asked.Namespace)
	}
}

// warn logs what the request made Budgets reach. There is no stream that could have it as an event.
func (m *limited) warn(list []spending.Warning) {
	for _, w := range list {
		klog.InfoS("A Budget has reached a percentage of its limit", "reason", v1alpha1.ReasonBudgetWarning, "budget", klog.KRef(m.asked.Namespace, w.Name),
			"identity", w.Identity, "percent", w.Percent, "spent", w.Spent, "limit", w.Limit, "renewsAt", w.Renews.UTC().Format(time.RFC3339))
	}
}
