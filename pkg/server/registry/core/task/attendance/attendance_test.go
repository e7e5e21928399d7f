// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package attendance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestPickedUpIsNotRead: a task that a controller picked up is not looked after, so it is not read again when it is due.
func TestPickedUpIsNotRead(t *testing.T) {
	a := New(clock.RealClock{})
	defer a.due.ShutDown()
	fresh, picked, other := &v1alpha1.Task{}, &v1alpha1.Task{}, &v1alpha1.Task{}
	fresh.UID, picked.UID, other.UID = "new", "picked", "other"
	a.Created(fresh)
	a.Created(picked)
	a.Changed(fresh) // its status is still empty
	picked.Status.Phase = v1alpha1.TaskPending
	a.Changed(picked)
	if !a.waits(fresh.UID) || a.waits(picked.UID) || a.waits(other.UID) {
		t.Errorf("new %v, picked up %v, unknown %v", a.waits(fresh.UID), a.waits(picked.UID), a.waits(other.UID))
	}
}

// TestQueueThatMoves: while a controller picks up tasks of a namespace, the others of the namespace are given time, and are not
// read; a deleted one is given none.
func TestQueueThatMoves(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	a := New(c)
	defer a.due.ShutDown()
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	task.UID = "uid"
	a.Created(task)
	if left := a.progress("ns"); left > 0 || !a.waits("uid") {
		t.Errorf("no controller has picked up any task: %v", left)
	}
	a.Began("ns")
	c.Step(unattended - time.Second)
	if left := a.progress("ns"); left != time.Second {
		t.Errorf("a controller has picked one up: %v", left)
	}
	if left := a.progress("other"); left > 0 {
		t.Errorf("another namespace: %v", left)
	}
	c.Step(time.Second)
	if left := a.progress("ns"); left > 0 {
		t.Errorf("no controller has picked up one for long: %v", left)
	}
	a.Settled("uid")
	if a.waits("uid") {
		t.Error("what was deleted still waits")
	}
}
