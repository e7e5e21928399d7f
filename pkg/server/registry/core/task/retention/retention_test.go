// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// timers is a clock that reports when somebody begins to wait.
type timers struct {
	*clocktesting.FakeClock
	made chan struct{}
}

func (c timers) NewTimer(d time.Duration) clock.Timer {
	t := c.FakeClock.NewTimer(d)
	c.made <- struct{}{}
	return t
}

// retainer returns a Trimmer of a store on disk.
func retainer(t *testing.T, policy Policy) (Trimmer, timers) {
	t.Helper()
	c := timers{clocktesting.NewFakeClock(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)), make(chan struct{})}
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	recordings := recording.New(e, recording.Limits{})
	l, err := eventlog.Open(t.Context(), e, eventlog.Options{Clock: c.FakeClock, PurgeInterval: -1, Projections: []eventlog.Projection{recordings}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return Trimmer{Log: l, Recordings: recordings, Clock: c, Policy: policy}, c
}

func named(task string) eventlog.Stream {
	return eventlog.Stream{Namespace: "default", Task: task, UID: types.UID(task)}
}

func (r Trimmer) fill(t *testing.T, task string, list ...v1alpha1.EventType) {
	t.Helper()
	for _, typ := range list {
		if _, err := r.Log.Append(t.Context(), named(task), []*v1alpha1.ExecutionEvent{{Type: typ}}); err != nil {
			t.Fatal(err)
		}
	}
}

// oldest returns the first seq that each task still has.
func (r Trimmer) oldest(t *testing.T, tasks ...string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, task := range tasks {
		h, err := r.Log.Head(t.Context(), named(task))
		if err != nil {
			t.Fatal(err)
		}
		all[task] = h.Oldest
	}
	return all
}

func TestTrimEnded(t *testing.T) {
	const day = 24 * time.Hour
	all := []string{"cancelled", "failed", "forked", "running", "short", "succeeded"}
	// steps are days after the tasks ended.
	for name, tc := range map[string]struct {
		policy Policy
		steps  map[int]map[string]int64
	}{
		"one age": {Policy{Ended: 2 * day}, map[int]map[string]int64{
			1: {"cancelled": 1, "failed": 1, "forked": 1, "running": 1, "short": 1, "succeeded": 1},
			2: {"cancelled": 3, "failed": 3, "forked": 3, "running": 1, "short": 1, "succeeded": 3},
		}},
		"failures longer": {Policy{Ended: day, Failed: 3 * day}, map[int]map[string]int64{
			1: {"cancelled": 3, "failed": 1, "forked": 3, "running": 1, "short": 1, "succeeded": 3},
			3: {"cancelled": 3, "failed": 3, "forked": 3, "running": 1, "short": 1, "succeeded": 3},
		}},
		"failures only": {Policy{Failed: day}, map[int]map[string]int64{
			9: {"cancelled": 1, "failed": 3, "forked": 1, "running": 1, "short": 1, "succeeded": 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := retainer(t, tc.policy)
			r.fill(t, "running", "TaskCreated", "TaskStarted", "WorkerFailed")
			r.fill(t, "succeeded", "TaskCreated", "TaskStarted", "TaskSucceeded")
			r.fill(t, "failed", "TaskCreated", "TaskStarted", "TaskFailed")
			r.fill(t, "cancelled", "TaskCreated", "TaskStarted", "TaskCancelled")
			r.fill(t, "short", "TaskCancelled")
			r.fill(t, "forked", "TaskCreated", "TaskStarted", "TaskSucceeded", "TaskForkCreated")
			start := c.Now()
			for days := range 10 {
				want, ok := tc.steps[days]
				if !ok {
					continue
				}
				c.SetTime(start.Add(time.Duration(days) * day))
				if _, err := r.trimEnded(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, r.oldest(t, all...)); diff != "" {
					t.Errorf("after %d days: %s", days, diff)
				}
				if n, err := r.trimEnded(t.Context()); n != 0 || err != nil {
					t.Errorf("again: %d, %v", n, err)
				}
			}
		})
	}
}

// Recordings of tasks that ended go after their own time, and with the events at the latest; those of tasks that run stay.
func TestTrimRecordings(t *testing.T) {
	for name, tc := range map[string]struct {
		policy Policy
		left   map[time.Duration]bool // whether the recording is there so long after the end
	}{
		"earlier": {Policy{Ended: 3 * time.Hour, Recordings: time.Hour}, map[time.Duration]bool{59 * time.Minute: true, time.Hour: false}},
		"alone":   {Policy{Recordings: time.Hour}, map[time.Duration]bool{59 * time.Minute: true, time.Hour: false}},
		"events":  {Policy{Ended: time.Hour, Recordings: 3 * time.Hour}, map[time.Duration]bool{59 * time.Minute: true, time.Hour: false}},
	} {
		t.Run(name, func(t *testing.T) {
			r, c := retainer(t, tc.policy)
			for _, task := range []string{"running", "ended"} {
				e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestStarted}
				p, err := recording.Prepare(e, &v1alpha1.EventRecording{Parts: []v1alpha1.RecordedPart{{Message: &v1alpha1.RecordedMessage{Role: "user"}}}}, "")
				if err != nil {
					t.Fatal(err)
				}
				clean := eventlog.Sanitize([]*v1alpha1.ExecutionEvent{e})
				if _, err := r.Log.AppendSanitized(eventlog.WithNote(t.Context(), recording.Given{clean.Events()[0]: p}), named(task), clean); err != nil {
					t.Fatal(err)
				}
			}
			r.fill(t, "ended", "TaskSucceeded")
			end := c.Now()
			for _, after := range slices.Sorted(maps.Keys(tc.left)) {
				c.SetTime(end.Add(after))
				if _, err := r.trimEnded(t.Context()); err != nil {
					t.Fatal(err)
				}
				for task, want := range map[string]bool{"ended": tc.left[after], "running": true} {
					if has, err := r.Recordings.Has(types.UID(task)); err != nil || has != want {
						t.Errorf("%s, %s after the end: there %t, want %t (%v)", task, after, has, want, err)
					}
				}
			}
		})
	}
}

// Events that are too old are removed at the start and then every hour, and
// watches see that.
func TestRetain(t *testing.T) {
	r, c := retainer(t, Policy{Ended: 90 * time.Minute})
	r.fill(t, "before", "TaskStarted", "TaskSucceeded")
	c.Step(2 * time.Hour)
	r.fill(t, "now", "TaskStarted", "TaskFailed")
	w, err := r.Log.Watch(t.Context(), eventlog.Query{}, r.Log.Revision(), eventlog.WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	left := func(want string) {
		t.Helper()
		e := <-w.ResultChan()
		o, ok := e.Object.(*v1alpha1.ExecutionEvent)
		if got := fmt.Sprintf("%s %v", e.Type, o); !ok || e.Type != watch.Deleted || o.Name != want {
			t.Fatalf("got %s, want %s to leave", got, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Retain(ctx)
	}()
	left("before.0000000001")
	<-c.made
	c.Step(retentionInterval) // one hour after its end, "now" is not old
	<-c.made
	if got := r.oldest(t, "now"); got["now"] != 1 {
		t.Errorf("trimmed too early: %v", got)
	}
	c.Step(retentionInterval)
	left("now.0000000001")
	<-c.made
	cancel()
	<-done
}
