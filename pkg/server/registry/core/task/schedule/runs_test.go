// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestRunsAreForgotten: of runs that have ended or are gone nothing is remembered.
func TestRunsAreForgotten(t *testing.T) {
	known := NewRuns()
	nightly := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "s"}, Spec: v1alpha1.TaskSpec{Schedule: "0 3 * * *"}}
	run := func(uid types.UID) *v1alpha1.Task {
		t := nightly.RunOfSchedule()
		t.UID, t.OwnerReferences = uid, []metav1.OwnerReference{*metav1.NewControllerRef(nightly, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		return t
	}
	known.Loaded()
	known.Created(run("a"))
	known.Created(run("b"))
	if n, _ := known.Of(nightly.UID); n != 2 {
		t.Errorf("%d runs are known, want 2", n)
	}
	ended := run("a")
	ended.Status.Phase = v1alpha1.TaskFailed
	known.Changed(ended)
	known.Remove(run("b"))
	if len(known.active) != 0 {
		t.Errorf("it remembers %v", known.active)
	}
}
