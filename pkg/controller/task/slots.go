// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// takenFor is how long a slot that was given stays taken without the cache
// showing its task as running. The status is written within milliseconds; what
// takes longer was not written.
const takenFor = 5 * time.Second

// slots limit how many tasks run at once. Tasks that wait are woken in the
// order they came.
type slots struct {
	// all and namespace are the limits; 0 is none.
	all, namespace int
	now            func() time.Time
	// running lists running tasks, as far as the cache knows.
	running func(context.Context) ([]types.NamespacedName, error)

	// mu guards what follows, and makes looking and taking one.
	mu sync.Mutex
	// taken are slots of tasks that the cache need not show as running yet.
	taken map[types.NamespacedName]time.Time
	queue []types.NamespacedName
}

// take gives the task a slot, or a step.Wait.
func (s *slots) take(ctx context.Context, t *v1alpha1.Task) error {
	if s.all == 0 && s.namespace == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	running, err := s.running(ctx)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(t)
	all, namespace := s.count(running, key)
	switch {
	case s.namespace > 0 && namespace >= s.namespace:
		err = step.Wait{After: limitWait, Reason: fmt.Sprintf("the namespace runs its limit of %d tasks", s.namespace)}
	case s.all > 0 && all >= s.all:
		err = step.Wait{After: limitWait, Reason: fmt.Sprintf("the server runs its limit of %d tasks", s.all)}
	}
	if err != nil {
		if !slices.Contains(s.queue, key) {
			s.queue = append(s.queue, key)
		}
		return err
	}
	s.queue = slices.DeleteFunc(s.queue, func(k types.NamespacedName) bool { return k == key })
	if s.taken == nil {
		s.taken = map[types.NamespacedName]time.Time{}
	}
	s.taken[key] = s.now()
	return nil
}

// count counts slots in use by others than the task itself.
func (s *slots) count(running []types.NamespacedName, self types.NamespacedName) (all, namespace int) {
	used := map[types.NamespacedName]bool{}
	for _, k := range running {
		used[k] = true
	}
	for k, at := range s.taken {
		if used[k] || s.now().Sub(at) > takenFor {
			delete(s.taken, k)
			continue
		}
		used[k] = true
	}
	delete(used, self)
	for k := range used {
		all++
		if k.Namespace == self.Namespace {
			namespace++
		}
	}
	return all, namespace
}

// freed names the tasks to wake when a task stopped running: those that wait,
// first come first. One that cannot use the slot queues up again, at the end,
// so all of them get their turn.
func (s *slots) freed() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.queue), wakeAtOnce)
	wake := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return wake
}

// wakeAtOnce is more than one, because the first in the queue may be gone, or
// wait for another limit than the one that was freed.
const wakeAtOnce = 4
