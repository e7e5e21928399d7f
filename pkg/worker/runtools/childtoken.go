// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtools

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tokenexchange"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// childToken returns what exchanges the task's transaction token for one of a child; nil if the task has none.
func (r run) childToken() (func(context.Context) (string, error), error) {
	subject, transaction := r.Credentials.TransactionToken, r.Task.Spec.Transaction
	if subject == "" || transaction == nil {
		return nil, nil //nolint:nilnil // children get none
	}
	options, ok, err := tokenexchange.FromEnv(r.Getenv)
	if err == nil && !ok {
		return nil, nil //nolint:nilnil // nothing is exchanged
	}
	var service *tokenexchange.Service
	if err == nil {
		service, err = tokenexchange.New(options, clock.RealClock{})
	}
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonRefused, "the exchange of transaction tokens is not configured correctly: %w", err)
	}
	return func(ctx context.Context) (string, error) { return service.Exchange(ctx, subject, transaction) }, nil
}
