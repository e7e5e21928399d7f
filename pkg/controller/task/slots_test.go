// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

func TestSlots(t *testing.T) {
	now := noon()
	var running []types.NamespacedName
	s := &slots{
		all: 3, namespace: 2, now: func() time.Time { return now },
		running: func(context.Context) ([]types.NamespacedName, error) { return running, nil },
	}
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	take := func(namespace, name, want string) {
		t.Helper()
		err := s.take(t.Context(), &v1alpha1.Task{ObjectMeta: in(namespace, name)})
		w, ok := errors.AsType[step.Wait](err)
		if err != nil && !ok || w.Reason != want {
			t.Errorf("%s/%s: %v, want %q", namespace, name, err, want)
		}
	}
	full, crowded := "the server runs its limit of 3 tasks", "the namespace runs its limit of 2 tasks"

	take("a", "1", "")
	take("a", "1", "") // again, after a conflict
	take("a", "2", "")
	take("a", "3", crowded) // the cache shows none of them yet
	take("b", "1", "")
	running = []types.NamespacedName{key("a", "1"), key("a", "2"), key("b", "1")}
	take("b", "2", full)
	take("a", "3", crowded)
	take("c", "1", full)
	running = running[1:]
	if got := s.freed(); !slices.Equal(got, []types.NamespacedName{key("a", "3"), key("b", "2"), key("c", "1")}) {
		t.Errorf("woken: %v", got)
	}
	take("a", "3", "")
	take("b", "2", full)
	take("c", "1", full)
	if got := s.freed(); !slices.Equal(got, []types.NamespacedName{key("b", "2"), key("c", "1")}) {
		t.Errorf("woken: %v", got)
	}
	now = now.Add(takenFor + 1) // a/3 was never written down
	take("b", "2", "")

	running = nil
	none := &slots{}
	for i := range 100 {
		if err := none.take(t.Context(), &v1alpha1.Task{ObjectMeta: in("a", fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSlotsAreNotOvertaken(t *testing.T) {
	s := &slots{all: 5, now: noon, running: func(context.Context) ([]types.NamespacedName, error) { return nil, nil }}
	var got atomic.Int32
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if s.take(t.Context(), &v1alpha1.Task{ObjectMeta: in("a", fmt.Sprint(i))}) == nil {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	if got.Load() != 5 {
		t.Errorf("%d slots of 5 were given", got.Load())
	}
}
