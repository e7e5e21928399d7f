// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/requester"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// This file applies Budgets to the model requests of tasks. What a request counts towards is found out before the append
// of its start; the append itself reserves it, or is refused.

// maxInput bounds what a worker may say about the size of a request. It is more than any request can have.
const maxInput = 1 << 30

// claims returns what the model requests among the events count towards; nil if the namespace has no Budgets.
func (r *Requests) claims(ctx context.Context, t *v1alpha1.Task, events []requestEvent) (*spending.Claims, error) {
	if len(events) == 0 {
		return nil, nil //nolint:nilnil // nothing counts
	}
	all, err := r.o.Budgets(ctx, t.Namespace)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	of := map[string]spending.Claim{}
	for _, e := range events {
		c := e.call
		use, output, p, err := r.use(ctx, t, c)
		if err != nil {
			return nil, err
		}
		var price *usage.Price
		if p != nil {
			price = usage.InForce(p.Spec.Prices, c.model, r.o.Clock.Now())
		}
		need := budget.NeedOf(c.most, output, price)
		need.Of = fmt.Sprintf("model %s of Provider %s", c.model, use.Provider)
		of[c.id] = spending.Claim{Charges: budget.Charges(all, use), Need: need, Used: &c.out}
	}
	return &spending.Claims{Of: of, Attempt: int64(t.Status.Attempts)}, nil
}

// use returns what Budgets select a request of the task by, how many tokens its output may have, and its Provider, nil if
// there is none. A delegated task is work for whoever asked for the root of its tree, and has the labels of the tasks above it.
func (r *Requests) use(ctx context.Context, t *v1alpha1.Task, c call) (budget.Use, int64, *v1alpha1.Provider, error) {
	u := budget.Use{
		Namespace: t.Namespace, Labels: maps.Clone(t.Labels), User: t.Annotations[v1alpha1.AnnotationRequestedBy], Groups: requester.GroupsOf(t),
	}
	a, err := r.o.Agents.Of(ctx, t)
	if err != nil {
		return u, 0, nil, err
	}
	if a != nil {
		u.Agent = within(t.Namespace, a.Namespace, a.Name)
	}
	p, err := r.providerOf(ctx, plan.UsesOf(t, a), c.provider)
	if err != nil {
		return u, 0, nil, err
	}
	if p != nil {
		u.Provider = within(t.Namespace, p.Namespace, p.Name)
	}
	tokens := plan.MaxTokens(t, a)
	for range maxDepth {
		parent, err := r.parentOf(ctx, t)
		if err != nil {
			return u, 0, nil, err
		}
		if parent == nil {
			break
		}
		if u.Labels == nil {
			u.Labels = map[string]string{}
		}
		maps.Copy(u.Labels, parent.Labels)
		t = parent
	}
	return u, tokens, p, nil
}

// within names an object as seen from a namespace.
func within(namespace, of, name string) string {
	if of == namespace {
		return name
	}
	return of + "/" + name
}

// exhausted returns the API error for a request that a Budget has no room for, and records the refusal.
func (r *Requests) exhausted(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, e *budget.ExhaustedError) error {
	for _, started := range events {
		if started.Type == v1alpha1.EventModelRequestStarted {
			r.noteBudget(ctx, t, "platform:budget:"+started.DedupKey, e.Error(), map[string]any{
				"reason": v1alpha1.ReasonBudgetExhausted, "budget": e.Name, "identity": e.Identity, "spent": e.Value(e.Spent), "reserved": e.Value(e.Reserved),
				"requested": e.Value(e.Asked), "limit": e.Value(e.Limit), "unit": e.Unit(), "renewsAt": e.Renews.UTC(),
			})
		}
	}
	return refusedBy(t, e, v1alpha1.ReasonBudgetExhausted)
}

// unpriced returns the API error for a request without a price, and records the refusal.
func (r *Requests) unpriced(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, e *budget.UnpricedError) error {
	for _, started := range events {
		if started.Type == v1alpha1.EventModelRequestStarted {
			r.noteBudget(ctx, t, "platform:budget:"+started.DedupKey, e.Error(), map[string]any{
				"reason": v1alpha1.ReasonBudgetUnpriced, "budget": e.Name, "identity": e.Identity, "unit": e.Unit(), "missing": e.Of,
			})
		}
	}
	return refusedBy(t, e, v1alpha1.ReasonBudgetUnpriced, v1alpha1.ReasonBudgetExhausted)
}

// refusedBy returns an API error with reasons, of which a worker takes the first that it knows. One of before there were
// Budgets knows the last, and ends its run in the same way.
func refusedBy(t *v1alpha1.Task, err error, reasons ...string) error {
	refused := apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New(err.Error()))
	for _, reason := range append(reasons, v1alpha1.ReasonTokenBudgetExhausted) {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(reason), Message: err.Error()})
	}
	return refused
}

// warn records that a request of the task made Budgets reach percentages of their limits.
func (r *Requests) warn(ctx context.Context, t *v1alpha1.Task, claims *spending.Claims) {
	if claims == nil {
		return
	}
	for _, w := range claims.Warnings {
		h := fnv.New64a()
		_, _ = h.Write([]byte(w.Identity)) // never fails
		key := fmt.Sprintf("platform:budget:%s:%x:%d:%d", w.Budget, h.Sum64(), w.Window.Unix(), w.Percent)
		of := ""
		if w.Identity != "" {
			of = " of " + w.Identity
		}
		r.noteBudget(ctx, t, key, fmt.Sprintf("Budget %s%s: %s of %s %s a %s are spent, which is %d%% or more", w.Name, of, w.Show(w.Spent), w.Show(w.Limit), w.Unit(), w.Charge.Window, w.Percent), map[string]any{
			"reason": v1alpha1.ReasonBudgetWarning, "budget": w.Name, "identity": w.Identity, "percent": w.Percent, "spent": w.Value(w.Spent),
			"limit": w.Value(w.Limit), "unit": w.Unit(), "renewsAt": w.Renews.UTC(),
		})
	}
}

// noteBudget adds a warning to the stream. It is best effort.
func (r *Requests) noteBudget(ctx context.Context, t *v1alpha1.Task, key, text string, content map[string]any) {
	note := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, key, text, content)
	if _, err := r.o.Log.Append(context.WithoutCancel(ctx), stored.Stream(t), []*v1alpha1.ExecutionEvent{note}); err != nil && !errors.Is(err, eventlog.ErrClosed) {
		klog.FromContext(ctx).V(2).Info("Cannot record a warning about a Budget", "task", klog.KObj(t), "err", err)
	}
}
