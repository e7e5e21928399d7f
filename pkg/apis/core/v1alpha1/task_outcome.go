// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lasted returns how long a task in a phase took, or has run until now, in whole seconds: from status.startTime to
// status.completionTime, whose retries and waits are part of it. Whatever shows the duration of a task shows this one. It is not known of a
// task that has not started, or has ended without a completionTime.
func Lasted(start, end *metav1.Time, phase TaskPhase, now time.Time) (d time.Duration, known bool) {
	switch {
	case start == nil, end == nil && phase.Terminal():
		return 0, false
	case end != nil:
		now = end.Time
	}
	// Times are stored in whole seconds. One that has not been stored yet is cut in the same way.
	return Length(max(now.Unix()-start.Unix(), 0), time.Second), true
}

// Reason returns why a task waits, or why it ended other than by success; empty if there is nothing to explain.
func (t *Task) Reason() string {
	holds := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(t.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
		return nil
	}
	switch c := holds(ConditionFailed); {
	case c != nil:
		return c.Reason
	case t.Status.Phase == TaskCancelled:
		return ReasonCancelRequested
	case t.Status.Phase.Terminal():
		return ""
	case holds(ConditionCancelRequested) != nil:
		return ReasonCancelRequested
	}
	if c := holds(ConditionWaitingToStart); c != nil {
		return c.Reason
	}
	for _, kind := range []string{ConditionWaitingForApproval, ConditionWaitingForChildren} {
		if holds(kind) != nil {
			return kind
		}
	}
	return ""
}
