// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/metric"
	"github.com/platform-ai/platform/pkg/tokenexchange"
)

// TaskTokens gives the tasks of callers a transaction token of their own, and checks those that workers submit for children. Tasks
// of chats, forks, schedules and runs of schedules have none, because no caller's token is available when they begin.
type TaskTokens struct {
	service *tokenexchange.Service
	// issued checks tokens that the token service issued for tasks.
	issued *issuer
	source string
	clock  clock.PassiveClock
	// exchanges counts exchanges.
	exchanges *exchangeMetrics
}

// newTaskTokens returns nil if no token service is configured.
func newTaskTokens(o ContextToken, accepted *issuer, c clock.PassiveClock, metrics prometheus.Registerer) (*TaskTokens, error) {
	if accepted == nil || o.Exchange.Endpoint == "" {
		return nil, nil //nolint:nilnil // no token service
	}
	if err := o.Exchange.ReadCA(o.CAFile); err != nil {
		return nil, fmt.Errorf("--context-token-ca-file: %w", err)
	}
	service, err := tokenexchange.New(o.Exchange, c)
	if err != nil {
		return nil, fmt.Errorf("--context-token-ca-file: %w", err)
	}
	issued := *accepted
	if o.Exchange.Audience != "" {
		issued.audience = o.Exchange.Audience
	}
	exchanges, err := metric.Register(metrics, newExchangeMetrics())
	if err != nil {
		return nil, err
	}
	return &TaskTokens{service: service, issued: &issued, source: o.Exchange.Source, clock: c, exchanges: exchanges}, nil
}

// exchangeMetrics are the metrics of exchanges.
type exchangeMetrics struct {
	metric.Group
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newExchangeMetrics() *exchangeMetrics {
	labels := []string{"result", "reason"}
	m := &exchangeMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "platform", Name: "context_token_tts_exchange_total",
			Help: "Exchanges of transaction tokens for the tasks of callers, by result (success or failure) and by the reason of the failure.",
		}, labels),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "platform", Name: "context_token_tts_exchange_duration_seconds",
			Help:    "How long these exchanges took, by result (success or failure) and by the reason of the failure.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, labels),
	}
	m.Group = metric.Group{m.total, m.took}
	return m
}

type incomingKey struct{}

// keepToken lets the rest of the request find the transaction token of its caller. It is in no user, since users reach
// the audit log.
func keepToken(r *http.Request, token string) {
	*r = *r.WithContext(context.WithValue(r.Context(), incomingKey{}, token))
}

// ForTask returns a token for a task that the caller of the request creates in its transaction; empty if it gets none. An
// error is a *tokenexchange.Error, unless ctx has ended.
func (t *TaskTokens) ForTask(ctx context.Context, transaction *v1alpha1.TaskTransaction) (string, error) {
	subject, _ := ctx.Value(incomingKey{}).(string)
	if t.source != tokenexchange.SourceIncoming || subject == "" || transaction == nil {
		return "", nil
	}
	began := t.clock.Now()
	token, err := t.service.Exchange(ctx, subject, transaction)
	result, reason := "success", ""
	if err != nil {
		result, reason = "failure", "cancelled"
		if failed, ok := errors.AsType[*tokenexchange.Error](err); ok {
			reason = string(failed.Cause)
		}
	}
	t.exchanges.total.WithLabelValues(result, reason).Inc()
	t.exchanges.took.WithLabelValues(result, reason).Observe(t.clock.Since(began).Seconds())
	if err == nil {
		err = t.Check(ctx, token, transaction)
	}
	return token, err
}

// checkTimeout limits the check of a token, which may need the keys of its issuer.
const checkTimeout = 10 * time.Second

// Check requires that a token is valid, and one of the transaction, with no scope that this lacks. The error does not
// contain the token.
func (t *TaskTokens) Check(ctx context.Context, token string, transaction *v1alpha1.TaskTransaction) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, err := t.issued.check(ctx, token)
	switch {
	case err != nil:
		return fmt.Errorf("the transaction token for the task is not accepted: %w", err)
	case c.Issuer != transaction.Issuer || c.Transaction != transaction.ID || c.Subject != transaction.Subject:
		return errors.New("the transaction token for the task is for another transaction")
	}
	for scope := range strings.FieldsSeq(c.Scope) {
		if !slices.Contains(transaction.Scopes, scope) {
			return fmt.Errorf("the transaction token for the task has the scope %s, which its transaction lacks", scope)
		}
	}
	return nil
}
