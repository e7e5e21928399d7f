// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// UsageTypes returns the event types that Usage counts.
func UsageTypes() []v1alpha1.EventType {
	return []v1alpha1.EventType{
		v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed,
	}
}

// Usage adds up model requests, for a trace and for status.usage of a task. Requests whose tokens were not
// reported are counted as requests without a report, and never as zero tokens. This includes requests that
// began and have no end.
type Usage struct {
	started, ended, reported int64
	total                    v1alpha1.TaskUsage
	answered                 answered
}

// answered is which model answered, in the event of a sequence number.
type answered struct {
	seq             int64
	provider, model string
}

// Add counts an event. It ignores types other than UsageTypes.
func (u *Usage) Add(e *v1alpha1.ExecutionEvent) {
	if e.Type == v1alpha1.EventModelRequestCompleted && e.Provider != "" {
		u.latest(answered{e.Seq, e.Provider, e.Model})
	}
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
	u.latest(o.answered)
}

func (u *Usage) latest(a answered) {
	if a.seq > u.answered.seq {
		u.answered = a
	}
}

// Answered returns the Provider and the model that answered the last request that was answered; both are empty if none was.
func (u *Usage) Answered() (provider, model string) { return u.answered.provider, u.answered.model }

// Sum returns the totals, or nil if no request was seen. Either event of a request may be missing.
func (u *Usage) Sum() *v1alpha1.TaskUsage {
	total := u.total
	if total.ModelRequests = max(u.started, u.ended); total.ModelRequests == 0 {
		return nil
	}
	total.UnreportedRequests = total.ModelRequests - u.reported
	return &total
}

// AddTokens adds a number of tokens to a sum. Nil means not reported, which differs from zero.
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
