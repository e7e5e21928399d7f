// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// setEnd writes how a task ended as the conditions Complete, Succeeded and Failed. It is called
// once the phase is terminal; before that a task has none of the three, so that a wait for
// Succeeded=false ends when the task has ended, and not before.
func setEnd(s *v1alpha1.TaskStatus, generation int64, o outcome) {
	reason := endingOf(o.phase).reason
	setCondition(s, generation, v1alpha1.ConditionComplete, metav1.ConditionTrue, reason, o.message)
	setSucceededAndFailed(s, generation, o)
}

func setSucceededAndFailed(s *v1alpha1.TaskStatus, generation int64, o outcome) {
	reason := endingOf(o.phase).reason
	why := reason
	if o.phase == v1alpha1.TaskFailed && isReason(o.reason) {
		why = o.reason
	}
	setCondition(s, generation, v1alpha1.ConditionSucceeded, is(o.phase == v1alpha1.TaskSucceeded), reason, o.message)
	setCondition(s, generation, v1alpha1.ConditionFailed, is(o.phase == v1alpha1.TaskFailed), why, o.message)
}

// addEnd adds Succeeded and Failed to a task that ended before these conditions existed. They
// agree with Complete and have the same transition time.
func addEnd(s *v1alpha1.TaskStatus) {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionComplete)
	if c == nil || meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSucceeded) != nil {
		return
	}
	since, o := c.LastTransitionTime, outcome{phase: s.Phase, message: c.Message}
	setSucceededAndFailed(s, c.ObservedGeneration, o)
	for _, typ := range []string{v1alpha1.ConditionSucceeded, v1alpha1.ConditionFailed} {
		meta.FindStatusCondition(s.Conditions, typ).LastTransitionTime = since
	}
}

func is(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// agreeing returns the outcome that the event that closed the stream describes.
func agreeing(o outcome, stands *v1alpha1.ExecutionEvent) outcome {
	if phase := endingBy(stands.Type).phase; phase != o.phase {
		o = outcome{phase: phase} // the stream was closed earlier, with another outcome
	}
	o.message = cmp.Or(o.message, stands.Summary)
	o.reason = cmp.Or(o.reason, reasonOfEvent(stands))
	return o
}

// reasonOfEvent returns the reason in the content of a terminal event, or an empty string.
func reasonOfEvent(e *v1alpha1.ExecutionEvent) string {
	if e.Content == nil {
		return ""
	}
	var content struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(e.Content.Raw, &content); err != nil {
		return ""
	}
	return content.Reason
}
