// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/modelgate"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/spending"
)

// refused returns the API error for a request that the gate did not let begin. If it must wait, the stream says once what it waits for.
func (r *Tasks) refused(ctx context.Context, t *v1alpha1.Task, e requestEvent, err error) error {
	if wait, ok := errors.AsType[*modelgate.WaitError](err); ok {
		r.note(ctx, t, "platform:rate:"+e.DedupKey, wait.Error(), map[string]any{
			"reason": v1alpha1.ReasonRateLimited, "of": wait.Limit.Of, "provider": e.call.provider, "retryInMs": wait.After.Milliseconds(),
		})
		return apierrors.NewTooManyRequests(wait.Error(), wait.RetryAfter())
	}
	if spent, ok := errors.AsType[*modelgate.BudgetError](err); ok {
		refused := forbidden(t, spent, v1alpha1.ReasonTokenBudgetExhausted)
		refused.ErrStatus.Details.Causes[0].Field = "spec.ai.tokenBudget"
		return refused
	}
	return err
}

// Refusal returns the API error for events that a Budget refused, and records the refusal; nil if err is about something else.
// A worker takes the first reason that it knows. One of before there were Budgets knows the last, and ends its run in the same way.
func (r *Tasks) Refusal(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, err error) error {
	if e, ok := errors.AsType[*budget.ExhaustedError](err); ok {
		r.noteRefusal(ctx, t, events, e, map[string]any{
			"reason": v1alpha1.ReasonBudgetExhausted, "budget": e.Name, "identity": e.Identity, "spent": e.Value(e.Spent), "reserved": e.Value(e.Reserved),
			"requested": e.Value(e.Asked), "limit": e.Value(e.Limit), "unit": e.Unit(), "renewsAt": e.Renews.UTC(),
		})
		return forbidden(t, e, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonTokenBudgetExhausted)
	}
	if e, ok := errors.AsType[*budget.UnpricedError](err); ok {
		r.noteRefusal(ctx, t, events, e, map[string]any{
			"reason": v1alpha1.ReasonBudgetUnpriced, "budget": e.Name, "identity": e.Identity, "unit": e.Unit(), "missing": e.Of,
		})
		return forbidden(t, e, v1alpha1.ReasonBudgetUnpriced, v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonTokenBudgetExhausted)
	}
	return nil
}

// noteRefusal notes for each of the events that begins a request that a Budget refused it.
func (r *Tasks) noteRefusal(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, err error, content map[string]any) {
	for _, started := range events {
		if started.Type == v1alpha1.EventModelRequestStarted {
			r.note(context.WithoutCancel(ctx), t, "platform:budget:"+started.DedupKey, err.Error(), content)
		}
	}
}

// forbidden returns an API error with reasons.
func forbidden(t *v1alpha1.Task, err error, reasons ...string) *apierrors.StatusError {
	refused := apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, err)
	for _, reason := range reasons {
		refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(reason), Message: err.Error()})
	}
	return refused
}

// warn records that a request of the task made Budgets reach percentages of their limits.
func (r *Tasks) warn(ctx context.Context, t *v1alpha1.Task, claims *spending.Claims) {
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
		r.note(context.WithoutCancel(ctx), t, key, fmt.Sprintf("Budget %s%s: %s of %s %s a %s are spent, which is %d%% or more", w.Name, of, w.Show(w.Spent), w.Show(w.Limit), w.Unit(), w.Charge.Window, w.Percent), map[string]any{
			"reason": v1alpha1.ReasonBudgetWarning, "budget": w.Name, "identity": w.Identity, "percent": w.Percent, "spent": w.Value(w.Spent),
			"limit": w.Value(w.Limit), "unit": w.Unit(), "renewsAt": w.Renews.UTC(),
		})
	}
}

// note adds a warning to the stream. It is best effort.
func (r *Tasks) note(ctx context.Context, t *v1alpha1.Task, key, text string, content map[string]any) {
	note := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, key, text, content)
	if _, err := r.log.Append(ctx, stored.Stream(t), []*v1alpha1.ExecutionEvent{note}); err != nil && !errors.Is(err, eventlog.ErrClosed) {
		klog.FromContext(ctx).V(2).Info("Cannot record a warning about a model request", "task", klog.KObj(t), "err", err)
	}
}
