// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// queued is the step.Wait of a task whose work cannot begin yet, with the reason for its
// condition. If its time is 0, the task is woken when it is its turn.
type queued struct {
	reason string
	step.Wait
}

// Unwrap makes it a step.Wait.
func (w queued) Unwrap() error { return w.Wait }

// waitsFor sets in the status what the task waits for before its work can begin. It reports
// whether that has changed.
func waitsFor(t *v1alpha1.Task, reason, message string) bool {
	c := waitingCondition(t)
	t.Status.Message = message
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingToStart, metav1.ConditionTrue, reason, message)
	return c == nil || c.Reason != reason
}

// waitsNoMore reverts what waitsFor set.
func waitsNoMore(t *v1alpha1.Task, message string) {
	c := waitingCondition(t)
	if c == nil {
		return
	}
	if t.Status.Message == c.Message {
		t.Status.Message = ""
	}
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionWaitingToStart, metav1.ConditionFalse, v1alpha1.ReasonWaitingOver, message)
}

// waitingCondition returns the condition of a task that waits for its work to begin; nil for other tasks.
func waitingCondition(t *v1alpha1.Task) *metav1.Condition {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionWaitingToStart)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	copied := *c // the one in the status changes
	return &copied
}

// waitsForSlot reports whether the task's status says that it waits for a slot of the server or of its namespace.
func waitsForSlot(t *v1alpha1.Task) bool {
	c := waitingCondition(t)
	return c != nil && (c.Reason == v1alpha1.ReasonNamespaceTaskLimitReached || c.Reason == v1alpha1.ReasonTaskLimitReached)
}

// waitsForSibling reports whether the task's status says that it waits until fewer of its siblings run.
func waitsForSibling(t *v1alpha1.Task) bool {
	c := waitingCondition(t)
	return c != nil && c.Reason == v1alpha1.ReasonChildLimitReached
}

// neverBegan adds to the message about the end of a task that none of its work was done, if it was still waiting.
func neverBegan(t *v1alpha1.Task, message string) string {
	c := waitingCondition(t)
	if c == nil {
		return message
	}
	return fmt.Sprintf("%s; it never began: %s", message, c.Message)
}
