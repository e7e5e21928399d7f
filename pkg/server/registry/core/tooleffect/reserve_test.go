// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The same call has the same effect, which is stored at once and stays.
func TestReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dry, err := w.Reserve(t.Context(), "default", spec("work", "1"), true)
	w.ok(err)
	if _, err := w.Get(t.Context(), "default", dry.Name); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "tooleffects") {
		t.Errorf("after a dry run: %v", err)
	}
	w.clock.Step(1500 * time.Millisecond)
	first := w.reserve("work", "1")
	if first.Name != dry.Name || !first.Spec.CreatedAt.Time.Equal(w.clock.Now()) || first.Status.Attempts != 0 {
		t.Errorf("%+v", first)
	}
	w.is(first, v1alpha1.ToolEffectPending, "")
	w.losePower(0, 1)
	w.clock.Step(time.Hour)
	for range 2 {
		if again := w.reserve("work", "1"); again.UID != first.UID || !again.Spec.CreatedAt.Equal(&first.Spec.CreatedAt) {
			t.Errorf("the same call again: %+v", again)
		}
	}
	if other := w.reserve("work", "2"); other.Name == first.Name {
		t.Error("another call has the same effect")
	}
	w.ok(w.claim(first, "a").Fail(t.Context(), 404, "no such repository"))
	if again := w.reserve("work", "1"); again.UID != first.UID || again.Status.State != v1alpha1.ToolEffectFailed {
		t.Errorf("the same call after its effect ended: %+v", again)
	}
	for _, seconds := range []int32{0, -1, 3601} {
		s := spec("work", "3")
		s.TimeoutSeconds = seconds
		if _, err := w.Reserve(t.Context(), "default", s, false); !apierrors.IsInvalid(err) {
			t.Errorf("%d s: %v", seconds, err)
		}
	}
}

// An effect that somebody made under the name of another is not used.
func TestForgedEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := spec("work", "1")
	name, err := Name(&s)
	w.ok(err)
	s.RequestDigest, s.CreatedAt = "another", metav1.NewMicroTime(noon)
	made, err := w.storage["tooleffects"].(rest.Creater).Create(w.as(""), &v1alpha1.ToolEffect{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: s,
		Status: v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectSucceeded, ApprovalID: "a"},
	}, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	w.ok(err)
	forged := made.(*v1alpha1.ToolEffect)
	w.is(forged, v1alpha1.ToolEffectPending, "")
	_, err = w.Reserve(t.Context(), "default", spec("work", "1"), false)
	code(t, "reserve", err, 409, "does not follow from its spec")
	_, err = w.Claim(t.Context(), forged, "a")
	code(t, "claim", err, 409, "does not follow from its spec")
	w.is(forged, v1alpha1.ToolEffectPending, "")
}

// A task has at most so many effects that wait, however many are reserved at once.
func TestMostPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var made, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range MaxPending/16 + 2 {
				switch _, err := w.Reserve(t.Context(), "default", spec("work", fmt.Sprint(i, "-", j)), false); {
				case err == nil:
					made.Add(1)
				case apierrors.IsTooManyRequests(err):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if made.Load() != MaxPending || refused.Load() != 32 {
		t.Errorf("%d are reserved, %d refused", made.Load(), refused.Load())
	}
	_, err := w.Reserve(t.Context(), "default", spec("work", "more"), true)
	code(t, "a dry run", err, 429, "at most 256")
	w.reserve("other", "1")
	w.tasks.set("work", "uid-work", v1alpha1.TaskRunning)
	var first *v1alpha1.ToolEffect
	w.ok(w.o.Stored.Select(t.Context(), "default", fields.OneTermEqualSelector(FieldPendingTask, "uid-work"), func(e *v1alpha1.ToolEffect) error { first = e; return nil }))
	w.claim(first, "a")
	w.reserve("work", "more")
}
