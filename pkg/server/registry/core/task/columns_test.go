// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/schedule"
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

// A schedule has the columns of a CronJob. Other tasks have nothing there, and are not counted as runs without a schedule's label.
func TestScheduleColumns(t *testing.T) {
	known := schedule.NewRuns()
	nightly := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "s"}, Spec: v1alpha1.TaskSpec{Schedule: "0 3 * * *", TimeZone: "Europe/Berlin", Suspend: true}}
	nightly.Status.LastScheduleTime = &metav1.Time{Time: time.Unix(1, 0)}
	once := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{TimeZone: "UTC"}} // the default
	run := func(uid types.UID) *v1alpha1.Task {
		t := nightly.RunOfSchedule()
		t.UID, t.OwnerReferences = uid, []metav1.OwnerReference{*metav1.NewControllerRef(nightly, v1alpha1.SchemeGroupVersion.WithKind("Task"))}
		return t
	}
	shown := func(t *v1alpha1.Task) (cells []any) {
		for _, c := range columns(func(*v1alpha1.Task) *v1alpha1.TaskUsage { return nil }, known) {
			if slices.Contains([]string{"Schedule", "Timezone", "Suspend", "Active", "Last Schedule"}, c.Name) && c.Wide {
				cells = append(cells, c.Value(t))
			}
		}
		return cells
	}
	want := func(task *v1alpha1.Task, cells ...any) {
		t.Helper()
		if got := shown(task); !reflect.DeepEqual(got, cells) {
			t.Errorf("%s: %v, want %v", task.Name, got, cells)
		}
	}
	active := func(n string) {
		t.Helper()
		want(nightly, "0 3 * * *", "Europe/Berlin", "true", n, nightly.Status.LastScheduleTime)
	}
	want(once, "", "", "", "", (*metav1.Time)(nil))
	active("?")

	// While the store is read, a run ends that was read before.
	early := run("early")
	early.Status.Phase = v1alpha1.TaskSucceeded
	known.Changed(early)
	known.Created(run("early"))
	known.Loaded()
	active("0")
	known.Created(run("a"))
	known.Created(run("b"))
	child := run("c")
	delete(child.Labels, v1alpha1.LabelScheduledRun)
	known.Created(child)
	active("2")
	ended := run("a")
	ended.Status.Phase = v1alpha1.TaskFailed
	known.Changed(ended)
	active("1")
	known.Remove(run("b"))
	active("0")
}
