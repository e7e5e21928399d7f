// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// UsageTypes are the events that Usage counts.
func UsageTypes() []v1alpha1.EventType {
	return []v1alpha1.EventType{
		v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed,
	}
}

// Usage adds up model requests, for a trace and for status.usage of a task. Tokens that were not reported are counted as
// requests without a report, never as zero: also those of a request that began and has no end.
type Usage struct {
	started, ended, reported int64
	total                    v1alpha1.TaskUsage
}

// Add counts an event; those of other types than UsageTypes do not count.
func (u *Usage) Add(e *v1alpha1.ExecutionEvent) {
	switch e.Type {
	case v1alpha1.EventModelRequestStarted:
		u.started++
	case v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed:
		u.ended++
		if e.InputTokens != nil && e.OutputTokens != nil {
			u.reported++
		}
		AddTokens(&u.total.InputTokens, e.InputTokens)
		AddTokens(&u.total.OutputTokens, e.OutputTokens)
		AddTokens(&u.total.CachedInputTokens, e.CachedInputTokens)
	default:
	}
}

// Merge adds what another Usage has counted.
func (u *Usage) Merge(o *Usage) {
	u.started, u.ended, u.reported = u.started+o.started, u.ended+o.ended, u.reported+o.reported
	AddTokens(&u.total.InputTokens, o.total.InputTokens)
	AddTokens(&u.total.OutputTokens, o.total.OutputTokens)
	AddTokens(&u.total.CachedInputTokens, o.total.CachedInputTokens)
}

// Sum is nil when no request was seen. Either event of a request may be lost.
func (u *Usage) Sum() *v1alpha1.TaskUsage {
	total := u.total
	if total.ModelRequests = max(u.started, u.ended); total.ModelRequests == 0 {
		return nil
	}
	total.UnreportedRequests = total.ModelRequests - u.reported
	return &total
}

// AddTokens adds a number of tokens to a sum. Nil is not reported, which differs from zero.
func AddTokens(sum **int64, n *int64) {
	if n == nil {
		return
	}
	v := *n
	if *sum != nil {
		v += **sum
	}
	*sum = &v
}
