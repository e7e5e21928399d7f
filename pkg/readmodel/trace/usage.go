// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// usage adds up model requests, as status.usage of a task does. Tokens that
// were not reported are counted as requests without a report, never as zero.
type usage struct {
	started, closed, reported int64
	total                     v1alpha1.TaskUsage
}

func (u *usage) ended(e *v1alpha1.ExecutionEvent) {
	u.closed++
	if e.InputTokens != nil && e.OutputTokens != nil {
		u.reported++
	}
	plus(&u.total.InputTokens, e.InputTokens)
	plus(&u.total.OutputTokens, e.OutputTokens)
	plus(&u.total.CachedInputTokens, e.CachedInputTokens)
}

func plus(sum **int64, n *int64) {
	if n == nil {
		return
	}
	v := *n
	if *sum != nil {
		v += **sum
	}
	*sum = &v
}

// sum is nil when no request was seen. Either event of a request may be lost.
func (u *usage) sum() *v1alpha1.TaskUsage {
	total := u.total
	if total.ModelRequests = max(u.started, u.closed); total.ModelRequests == 0 {
		return nil
	}
	total.UnreportedRequests = total.ModelRequests - u.reported
	return &total
}
