// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func TestScheduler(t *testing.T) {
	hourly := func(t *v1alpha1.Task) {
		t.Spec.Schedule = "0 * * * *"
		t.Status.Phase = v1alpha1.TaskScheduled
		t.CreationTimestamp = metav1.NewTime(noon().Add(-90 * time.Minute))
		t.Status.LastScheduleTime = &metav1.Time{Time: noon().Add(-time.Hour)}
	}
	begun := []string{"TaskCreated", "TaskPhaseChanged"}
	child := func(name string, phase v1alpha1.TaskPhase, age time.Duration) v1alpha1.Task {
		return v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon().Add(-age))}, Status: v1alpha1.TaskStatus{Phase: phase}}
	}
	for _, tc := range []struct {
		name    string
		task    *v1alpha1.Task
		runs    []v1alpha1.Task
		now     time.Duration
		want    string
		created string
		removed []string
		last    time.Duration // of lastScheduleTime, from noon
		message string
		end     bool
		events  []string
	}{
		{name: "no schedule", task: task(pending), want: "nil"},
		{name: "pending becomes scheduled", task: task(hourly, pending), now: -time.Minute, want: "wait 1m0s", last: -time.Hour, events: begun},
		{
			name: "new becomes scheduled", task: task(hourly, func(t *v1alpha1.Task) { t.Status.Phase = "" }), now: -time.Minute, want: "wait 1m0s", last: -time.Hour,
			events: begun,
		},
		{name: "tick", task: task(hourly), want: "wait 1h0m0s", created: "t-1767268800", message: "run t-1767268800 was created"},
		{name: "forbid", task: task(hourly), runs: []v1alpha1.Task{child("old", v1alpha1.TaskRunning, time.Hour)}, want: "wait 1h0m0s", message: "the run of 2026-01-01T12:00:00Z was skipped: an earlier one is active"},
		{
			name: "allow", task: task(hourly, func(t *v1alpha1.Task) { t.Spec.ConcurrencyPolicy = v1alpha1.ConcurrencyAllow }), runs: []v1alpha1.Task{child("old", v1alpha1.TaskRunning, time.Hour)},
			want: "wait 1h0m0s", created: "t-1767268800", message: "run t-1767268800 was created",
		},
		{name: "after a crash its own run does not forbid it", task: task(hourly), runs: []v1alpha1.Task{child("t-1767268800", v1alpha1.TaskRunning, 0)}, want: "wait 1h0m0s", created: "t-1767268800", message: "run t-1767268800 was created"},
		{name: "missed", task: task(hourly), now: 101 * time.Second, want: "wait 58m19s", message: "the run of 2026-01-01T12:00:00Z was missed: it is later than its starting deadline"},
		{name: "suspended", task: task(hourly, func(t *v1alpha1.Task) { t.Spec.Suspend = true }), want: "wait 1m0s", last: -time.Hour, message: "the schedule is suspended"},
		{
			name: "missed for a day", task: task(hourly, func(t *v1alpha1.Task) {
				t.Status.LastScheduleTime = nil
				t.CreationTimestamp = metav1.NewTime(noon().Add(-24 * time.Hour))
			}),
			now: 101 * time.Second, want: "wait 58m19s", message: "24 runs were missed, the last one of 2026-01-01T12:00:00Z",
		},
		{
			name: "changed since", task: task(hourly, func(t *v1alpha1.Task) { t.Status.ScheduleSince = &metav1.Time{Time: noon().Add(-30 * time.Second)} }), now: -10 * time.Second,
			want: "wait 10s", last: -time.Hour,
		},
		{
			name: "resumed", task: task(hourly, func(t *v1alpha1.Task) {
				t.Status.Message, t.Status.ScheduleSince = "the schedule is suspended", &metav1.Time{Time: noon().Add(time.Hour + time.Minute)}
			}), now: 62 * time.Minute, want: "wait 58m0s", last: -time.Hour,
		},
		{
			name: "history", task: task(hourly, func(t *v1alpha1.Task) { t.Spec.SuccessfulRunsHistoryLimit = new(int32(1)) }), now: -time.Minute, want: "wait 1m0s", last: -time.Hour,
			runs: []v1alpha1.Task{
				child("s1", v1alpha1.TaskSucceeded, 4*time.Hour), child("s2", v1alpha1.TaskSucceeded, 2*time.Hour), child("r", v1alpha1.TaskRunning, 5*time.Hour),
				child("f1", v1alpha1.TaskFailed, 3*time.Hour), child("f2", v1alpha1.TaskCancelled, time.Hour),
			}, removed: []string{"f1", "s1"},
		},
		{name: "bad cron", task: task(hourly, pending, func(t *v1alpha1.Task) { t.Spec.Schedule = "often" }), want: "done", last: -time.Hour, end: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &eventLog{}
			created, told := "", ""
			var removed []string
			tell := func(_ context.Context, _ *v1alpha1.Task, reason, _ string) { told += reason }
			s := scheduler{
				warn: tell, note: tell,
				now: func() time.Time { return noon().Add(tc.now) }, fresh: func(context.Context, *v1alpha1.Task) error { return nil }, append: l.append, end: l.finish,
				children: func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error) { return tc.runs, nil },
				create: func(_ context.Context, _, c *v1alpha1.Task) error {
					created = c.Name
					if c.Spec.Schedule != "" || c.Labels[v1alpha1.LabelParentTask] != "t" || c.Labels[v1alpha1.LabelScheduledRun] != "true" {
						t.Errorf("run = %+v", c)
					}
					return nil
				},
				remove: func(_ context.Context, c *v1alpha1.Task) error { removed = append(removed, c.Name); return nil },
			}
			outcomeIs(t, s.do(t.Context(), tc.task), tc.want)
			slices.Sort(removed)
			if created != tc.created || !slices.Equal(removed, tc.removed) || (l.end != nil) != tc.end || !slices.Equal(l.events, tc.events) {
				t.Errorf("created %q, removed %v, end %+v, events %v", created, removed, l.end, l.events)
			}
			events := map[bool]string{tc.created != "": v1alpha1.EventReasonScheduledRun, strings.HasPrefix(tc.name, "missed"): v1alpha1.EventReasonMissedSchedule}[true]
			if told != events {
				t.Errorf("people are told %q, want %q", told, events)
			}
			if tc.end || tc.want == "nil" {
				return
			}
			st := tc.task.Status
			if missed := meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionMissedSchedule); missed != strings.HasPrefix(tc.name, "missed") {
				t.Errorf("missed %v", missed)
			}
			if st.Phase != v1alpha1.TaskScheduled || st.Message != tc.message || !st.LastScheduleTime.Time.Equal(noon().Add(tc.last)) {
				t.Errorf("status = %+v, last %s", st, st.LastScheduleTime)
			}
		})
	}
}

// TestRunsOfMonitors: the run of a schedule has no more tools than the schedule, and needs the same approvals.
func TestRunsOfMonitors(t *testing.T) {
	s := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "t", Annotations: map[string]string{
		v1alpha1.AnnotationDisableCoordination: "true", v1alpha1.AnnotationForkGates: "post_review_comment", v1alpha1.AnnotationPRMonitorName: "watch", "other": "x",
	}}}
	run := scheduledRun(s, noon())
	for key, want := range map[string]string{
		v1alpha1.AnnotationDisableCoordination: "true", v1alpha1.AnnotationForkGates: "post_review_comment", v1alpha1.AnnotationPRMonitorName: "watch", "other": "",
	} {
		if run.Annotations[key] != want {
			t.Errorf("%s: %q, want %q", key, run.Annotations[key], want)
		}
	}
}
