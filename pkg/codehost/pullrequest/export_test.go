// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"time"

	"github.com/platform-ai/platform/pkg/codehost"
)

// ReconcileAtOnce is Reconcile without pauses between looks. It returns how long they would have been.
func ReconcileAtOnce(ctx context.Context, host codehost.Host, o Order) (Answer, time.Duration, error) {
	var all time.Duration
	a, err := reconciler{host: host, order: o, wait: func(ctx context.Context, d time.Duration) error {
		all += d
		return context.Cause(ctx)
	}}.reconcile(ctx)
	return a, all, err
}
