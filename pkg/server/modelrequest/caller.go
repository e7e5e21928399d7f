// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

var _ models.Meter = (*Requests)(nil)

// unlimited is a request that is not sent.
type unlimited struct{}

// End does nothing.
func (unlimited) End(models.Ended) {}

// Start lets a request of a chat or of a vendor's API begin, or refuses it with an API error: 429 with the time after which to try
// again, or 403 if it never fits. What a Budget reserves is durable before the request is sent. A caller has one place in the queue of a
// rate limit, as a task has. A client that states no limit of the output is expected to use that of its Agent, or the default of plan;
// what exceeds it is spent all the same. A warning of a Budget is logged, because there is no stream of events that could have it.
func (r *Requests) Start(ctx context.Context, a models.Asked) (models.Measurement, error) {
	if a.PassedOver {
		return unlimited{}, nil
	}
	q, err := r.askOf(ctx, a)
	if err != nil {
		return nil, err
	}
	budgets, err := r.budgetsOf(ctx, a.Namespace)
	if err != nil {
		return nil, err
	}
	undo, err := r.begin(ctx, q)
	if wait, ok := errors.AsType[*modelgate.WaitError](err); ok {
		return nil, refused(v1alpha1.ReasonRateLimited, wait, http.StatusTooManyRequests, wait.RetryAfter())
	}
	if err != nil {
		return nil, err
	}
	m := &began{requests: r, ask: q, claim: r.claim(budgets, q), log: klog.FromContext(ctx)}
	if len(m.claim.Charges) == 0 {
		return m, nil
	}
	if err = r.o.Accounts.Commit(engine.Grow, r.o.Accounts.Begin(q.Call, m.claim.Charges, m.claim.Need)); err == nil {
		return m, nil
	}
	undo()
	if unpriced, ok := errors.AsType[*budget.UnpricedError](err); ok {
		return nil, refused(v1alpha1.ReasonBudgetUnpriced, unpriced, http.StatusForbidden, 0)
	}
	if spent, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		code := http.StatusTooManyRequests
		if spent.Asked > spent.Limit {
			code = http.StatusForbidden
		}
		return nil, refused(v1alpha1.ReasonBudgetExhausted, spent, code, int(math.Ceil(spent.Renews.Sub(r.o.Clock.Now()).Seconds())))
	}
	return nil, models.StartRefused(err)
}

// askOf reads what is stored about a request of a caller. An Agent or a Provider that was deleted has no limits, but Budgets still
// select the request by its name. The ID of the request is made here, because clients choose those of theirs.
func (r *Requests) askOf(ctx context.Context, a models.Asked) (*ask, error) {
	q := &ask{
		Request: modelgate.Request{
			Task: types.UID("caller/" + a.Namespace + "/" + a.Caller.GetName()), Served: true, Namespace: a.Namespace, Call: string(uuid.NewUUID()), MaxTokens: a.MaxTokens,
		},
		use:   budget.Use{Namespace: a.Namespace, Agent: a.Agent, Provider: a.Provider, User: a.Caller.GetName(), Groups: a.Caller.GetGroups()},
		model: a.Model, provider: a.Read, maxInput: a.MaxInput, outside: a.Outside,
	}
	inside := request.WithNamespace(request.WithUser(ctx, nil), a.Namespace) // the server reads for itself
	if q.provider == nil {
		var err error
		if q.provider, err = unlessGone(r.o.Provider(inside, a.Provider)); err != nil {
			return nil, err
		}
	}
	if p := q.provider; p != nil {
		q.Limits = modelgate.LimitOf(q.Limits, "Provider", p.Namespace, p.Name, p.Spec.RateLimit)
	}
	if a.Agent == "" {
		return q, nil
	}
	agent, err := unlessGone(r.o.Agent(inside, a.Agent))
	if err == nil && agent != nil {
		q.Limits = modelgate.LimitOf(q.Limits, "Agent", agent.Namespace, agent.Name, agent.Spec.RateLimit)
	}
	return q, err
}

// refused returns the API error of a refusal; see models.LimitReason.
func refused(reason string, err error, code, after int) error {
	e := apierrors.NewTooManyRequests(err.Error(), max(1, after))
	if e.ErrStatus.Code = int32(code); code == http.StatusForbidden {
		e.ErrStatus.Reason, e.ErrStatus.Details.RetryAfterSeconds = metav1.StatusReasonForbidden, 0
	}
	e.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseType(reason), Message: err.Error()}}
	return e
}

// began is a request of a caller that began.
type began struct {
	requests *Requests
	ask      *ask
	claim    spending.Claim
	log      klog.Logger
}

// End settles the request. What it used stays estimated if its vendor did not report it.
func (m *began) End(e models.Ended) {
	r, out := m.requests, e.Outcome()
	if m.ask.limited() {
		r.gate.End(modelgate.Ended{Call: modelgate.Call{Task: m.ask.Task, ID: m.ask.Call}, Used: out.Used(), Input: e.Usage.InputTokens})
	}
	if len(m.claim.Charges) == 0 {
		return
	}
	r.o.Ends.Do(m.log, "the end of a model request", func() error {
		return r.o.Accounts.Commit(engine.Free, r.o.Accounts.End(m.ask.Call, &out, m.warn)) // it replaces a row, and removes one
	}, func(err error) {
		m.log.Error(err, "Cannot settle what a model request spent; the next start of the server charges all that was reserved", "namespace", m.ask.Namespace)
	})
}

// warn logs what the request made Budgets reach.
func (m *began) warn(list []spending.Warning) {
	for _, w := range list {
		m.log.Info("A Budget has reached a percentage of its limit", "reason", v1alpha1.ReasonBudgetWarning, "budget", klog.KRef(m.ask.Namespace, w.Name),
			"identity", w.Identity, "percent", w.Percent, "spent", w.Value(w.Spent), "limit", w.Value(w.Limit), "unit", w.Unit(), "renewsAt", w.Renews.UTC().Format(time.RFC3339))
	}
}
