// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// task records a task; parent is the root of its tree, or empty.
func (s *store) task(name, parent string, ended bool) {
	s.t.Helper()
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(s.clock.Now()),
	}}
	if parent != "" {
		t.Status.Delegation = &v1alpha1.TaskDelegation{ParentUID: types.UID("uid-" + parent), RootUID: types.UID("uid-" + parent)}
	}
	if ended {
		t.Status.CompletionTime = new(metav1.NewTime(s.clock.Now()))
	}
	if err := s.CatchTask(t); err != nil {
		s.t.Fatal(err)
	}
	s.append(name, begin(1), end(1, 1, 1))
}

// TestRetention: cohorts go as a whole, once all of their tasks have ended and nothing is newer than the retention.
func TestRetention(t *testing.T) {
	s := open(t)
	s.task("gone", "", true)
	s.task("gone-child", "gone", true)
	s.task("root", "", true)
	s.task("running", "root", false)
	s.task("parent", "", true)
	if _, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: "open"}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: "old"})
	if err == nil {
		err = c.End(usage.Outcome{}, usage.StatusFailed)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.clock.Step(100 * 24 * time.Hour)
	s.task("child", "parent", true) // newer, so its cohort stays
	inactive := s.clock.Now().Add(-90 * 24 * time.Hour)
	for i, want := range []int{2, 0} {
		n, err := ledger.Retention{Ledger: s.Ledger}.Expire(t.Context(), inactive)
		if err != nil || n != want {
			t.Errorf("removal %d removed %d cohorts, want %d: %v", i+1, n, want, err)
		}
	}
	one := "/1 1/1 call m completed 1 1 - - complete"
	sorted(s, t, []string{"root" + one, "running" + one, "parent" + one, "child" + one, "/open  call  started - - - -"})
	v := s.view(s.clock.Now())
	var names []string
	for task, err := range v.Tasks(usage.Period{}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, task.Name)
	}
	if len(names) != 4 || v.RetainedSince().Before(noon) || !v.RetainedSince().Before(inactive) {
		t.Errorf("the tasks are %q, retained since %v", names, v.RetainedSince())
	}
	for _, uid := range []string{"uid-gone", "uid-gone-child"} {
		for o, err := range v.OfTask(uid) {
			t.Errorf("%s still has %v, %v", uid, o, err)
		}
	}
}
