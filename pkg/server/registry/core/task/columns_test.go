// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestPhaseColumn(t *testing.T) {
	parked := func(status metav1.ConditionStatus) func(*v1alpha1.Task) {
		return func(t *v1alpha1.Task) {
			t.Status.Phase = v1alpha1.TaskRunning
			meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionWaitingForApproval, Status: status, Reason: "x"})
		}
	}
	for want, change := range map[string]func(*v1alpha1.Task){
		"Pending":            func(*v1alpha1.Task) {},
		"Running":            parked(metav1.ConditionFalse),
		"WaitingForApproval": parked(metav1.ConditionTrue),
		"Succeeded":          func(t *v1alpha1.Task) { parked(metav1.ConditionTrue)(t); t.Status.Phase = v1alpha1.TaskSucceeded },
		"Terminating": func(t *v1alpha1.Task) {
			parked(metav1.ConditionTrue)(t)
			t.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		},
	} {
		task := &v1alpha1.Task{}
		change(task)
		if got := phase(task); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
