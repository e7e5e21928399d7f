// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A schedule that is changed or resumed counts from then on; other updates leave that, and updates of the status cannot change it.
func TestScheduleSince(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	r := &Resource{clock: c}
	before := &metav1.Time{Time: time.Unix(10, 0)}
	now := &metav1.Time{Time: c.Now()}
	for _, tc := range []struct {
		name   string
		change func(*v1alpha1.TaskSpec)
		want   *metav1.Time
	}{
		{"schedule", func(s *v1alpha1.TaskSpec) { s.Schedule = "* * * * *" }, now},
		{"time zone", func(s *v1alpha1.TaskSpec) { s.TimeZone = "Asia/Tokyo" }, now},
		{"resumed", func(s *v1alpha1.TaskSpec) { s.Suspend = false }, now},
		{"prompt", func(s *v1alpha1.TaskSpec) { s.Prompt = "other" }, before},
		{"no schedule any more", func(s *v1alpha1.TaskSpec) { s.Schedule = "" }, before},
	} {
		old := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Schedule: "@hourly", TimeZone: "UTC", Suspend: true}}
		old.Status.ScheduleSince = before
		changed := old.DeepCopy()
		tc.change(&changed.Spec)
		r.prepareForUpdate(t.Context(), changed, old)
		if !changed.Status.ScheduleSince.Equal(tc.want) {
			t.Errorf("%s: since %v, want %v", tc.name, changed.Status.ScheduleSince, tc.want)
		}
		status := changed.DeepCopy()
		status.Status.ScheduleSince = nil
		if keepRecorded(context.Background(), status, changed); !status.Status.ScheduleSince.Equal(tc.want) {
			t.Errorf("%s: an update of the status made it %v", tc.name, status.Status.ScheduleSince)
		}
	}
}
