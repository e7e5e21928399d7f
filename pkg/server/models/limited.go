// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// provider returns a Provider; nil if it does not exist.
func (r LimitReaders) provider(ctx context.Context, name string) (*v1alpha1.Provider, error) {
	p, err := r.Provider(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // it was deleted
	}
	return p, err
}

// rates returns the rate limits of a request.
func (r LimitReaders) rates(ctx context.Context, a Asked, p *v1alpha1.Provider) ([]modelgate.Limit, error) {
	var all []modelgate.Limit
	if p != nil {
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

// LimitReason returns the reason, RateLimited, BudgetExhausted or BudgetUnpriced, if Limits refused a request; otherwise an empty string.
func LimitReason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, c := range status.Status().Details.Causes {
		switch c.Type {
		case v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonBudgetUnpriced, v1alpha1.ReasonRateLimited:
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
	log     klog.Logger
}

// need returns what the request may use at most.
func (m *limited) need(p *v1alpha1.Provider) budget.Need {
	var price *usage.Price
	if p != nil {
		price = usage.InForce(p.Spec.Prices, m.asked.Model, m.clock.Now())
	}
	input := m.asked.MaxInput
	if m.asked.Outside != nil {
		input += m.asked.Outside()
	}
	n := budget.NeedOf(input, m.asked.MaxTokens, price)
	n.Of = "model " + m.asked.Model + " of Provider " + m.asked.Provider
	return n
}

// End settles the request. What it used stays estimated if its vendor did not report it.
func (m *limited) End(e Ended) {
	out := e.outcome()
	if m.rated {
		m.Gate.End(modelgate.Ended{Call: modelgate.Call{Task: m.caller, ID: m.call}, Used: out.Used(), Input: e.Usage.InputTokens})
	}
	if len(m.charges) == 0 {
		return
	}
	m.ends.Do(m.log, "the end of a model request", func() error {
		return m.accounts.Commit(engine.Free, m.accounts.End(m.call, &out, m.warn)) // it replaces a row, and removes one
	}, func(err error) {
		m.log.Error(err, "Cannot settle what a model request spent; the next start of the server charges all that was reserved", "namespace", m.asked.Namespace)
	})
}

// warn logs what the request made Budgets reach. There is no stream that could have it as an event.
func (m *limited) warn(list []spending.Warning) {
	for _, w := range list {
		m.log.Info("A Budget has reached a percentage of its limit", "reason", v1alpha1.ReasonBudgetWarning, "budget", klog.KRef(m.asked.Namespace, w.Name),
			"identity", w.Identity, "percent", w.Percent, "spent", w.Value(w.Spent), "limit", w.Value(w.Limit), "unit", w.Unit(), "renewsAt", w.Renews.UTC().Format(time.RFC3339))
	}
}
