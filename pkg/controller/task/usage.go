// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// usageTypes are the events that usageSum wants to see.
func usageTypes() []v1alpha1.EventType {
	return []v1alpha1.EventType{
		v1alpha1.EventModelRequestStarted, v1alpha1.EventModelRequestCompleted, v1alpha1.EventModelRequestFailed,
	}
}

// usageSum adds up model requests. Tokens that were not reported are counted
// as requests without a report, never as zero tokens: also those of a request
// that began and was heard of no more.
type usageSum struct {
	started, ended, reported int64
	total                    v1alpha1.TaskUsage
}

func (s *usageSum) add(e *v1alpha1.ExecutionEvent) {
	if e.Type == v1alpha1.EventModelRequestStarted {
		s.started++
		return
	}
	s.ended++
	if e.InputTokens != nil && e.OutputTokens != nil {
		s.reported++
	}
	addTokens(&s.total.InputTokens, e.InputTokens)
	addTokens(&s.total.OutputTokens, e.OutputTokens)
	addTokens(&s.total.CachedInputTokens, e.CachedInputTokens)
}

func addTokens(sum **int64, n *int64) {
	if n == nil {
		return
	}
	v := *n
	if *sum != nil {
		v += **sum
	}
	*sum = &v
}

// usage is nil when no model request was seen.
func (s *usageSum) usage() *v1alpha1.TaskUsage {
	u := s.total
	u.ModelRequests = max(s.started, s.ended) // events are best effort, either may be lost
	if u.ModelRequests == 0 {
		return nil
	}
	u.UnreportedRequests = u.ModelRequests - s.reported
	return &u
}
