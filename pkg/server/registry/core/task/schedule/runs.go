// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule knows the runs of schedules: tasks that a schedule, which is a task as well, creates.
package schedule

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Runs knows the runs of schedules that have not ended, for columns. It is kept in memory and filled from the store at the start.
type Runs struct {
	mu sync.Mutex
	// active holds the runs by the UID of their schedule.
	active map[types.UID]map[types.UID]struct{}
	// ended holds the runs that ended while the store was read, which may show them as they were before; nil afterwards.
	ended map[types.UID]struct{}
}

// NewRuns returns runs that are known after Loaded.
func NewRuns() *Runs {
	return &Runs{active: map[types.UID]map[types.UID]struct{}{}, ended: map[types.UID]struct{}{}}
}

// scheduleOf returns the UID of the schedule whose run a task is, and "" for other tasks.
func scheduleOf(t *v1alpha1.Task) types.UID {
	if o := metav1.GetControllerOf(t); o != nil && t.Labels[v1alpha1.LabelScheduledRun] == "true" {
		return o.UID
	}
	return ""
}

// Created is called for each new task, and for those that exist at the start.
func (r *Runs) Created(t *v1alpha1.Task) {
	of := scheduleOf(t)
	if of == "" || t.Status.Phase.Terminal() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.ended[t.UID]; ok {
		return
	}
	if r.active[of] == nil {
		r.active[of] = map[types.UID]struct{}{}
	}
	r.active[of][t.UID] = struct{}{}
}

// Changed is called for each task whose status was written.
func (r *Runs) Changed(t *v1alpha1.Task) {
	if t.Status.Phase.Terminal() {
		r.Remove(t)
	}
}

// Remove forgets a task that is gone.
func (r *Runs) Remove(t *v1alpha1.Task) {
	of := scheduleOf(t)
	if of == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended != nil {
		r.ended[t.UID] = struct{}{}
	}
	delete(r.active[of], t.UID)
	if len(r.active[of]) == 0 {
		delete(r.active, of)
	}
}

// Loaded is called when the tasks that exist at the start were read.
func (r *Runs) Loaded() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = nil
}

// Of returns how many runs of a schedule have not ended, and whether that is known yet.
func (r *Runs) Of(schedule types.UID) (n int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active[schedule]), r.ended == nil
}
