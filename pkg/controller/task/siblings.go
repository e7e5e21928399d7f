// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/fairshare"
)

// siblings limits how many children of one task run at once: a ledger of slots for each parent.
type siblings struct {
	shows func(context.Context, *v1alpha1.Task) (bool, error)
	now   func() time.Time

	mu   sync.Mutex // guards all and wake
	all  map[types.UID]*slots
	wake func(types.NamespacedName)
}

func newSiblings(now func() time.Time, shows func(context.Context, *v1alpha1.Task) (bool, error)) *siblings {
	return &siblings{now: now, shows: shows, all: map[types.UID]*slots{}}
}

// of returns the ledger of a child's parent. Until a child asks for a slot, the limit is not known, and what runs is
// only counted.
func (s *siblings) of(t *v1alpha1.Task) *slots {
	s.mu.Lock()
	defer s.mu.Unlock()
	room, ok := s.all[t.Status.Delegation.ParentUID]
	if !ok {
		room = newSlots(unknown, 0, fairshare.Shares{}, s.now, s.shows)
		if s.wake != nil {
			room.wakeBy(s.wake)
		}
		s.all[t.Status.Delegation.ParentUID] = room
	}
	return room
}

// take gives the child a slot, or returns a queued error while too many of its siblings run.
func (s *siblings) take(ctx context.Context, t *v1alpha1.Task, limit int) error {
	room := s.of(t)
	room.limit(limit)
	err := room.take(ctx, t)
	if _, ok := errors.AsType[queued](err); ok {
		return queued{v1alpha1.ReasonChildLimitReached, step.Wait{Reason: fmt.Sprintf("task %s runs its limit of %d delegated tasks", t.Status.Delegation.Parent, limit)}}
	}
	return err
}

// leave gives back a slot that the child cannot use now.
func (s *siblings) leave(ctx context.Context, t *v1alpha1.Task) error {
	if !belongs(t) {
		return nil
	}
	return s.of(t).leave(ctx, t)
}

func (s *siblings) observe(t *v1alpha1.Task) {
	switch {
	case t.Status.Delegation == nil:
	case t.Status.Delegation.Detached && !usesSlot(t): // one that runs still counts, or a parent could have any number run
		s.forget(t)
	default:
		room := s.of(t)
		room.observe(t)
		s.tidy(t, room)
	}
}

func (s *siblings) remember(t *v1alpha1.Task) {
	if belongs(t) || t.Status.Delegation != nil && usesSlot(t) {
		room := s.of(t)
		room.recall(t, waitsForSibling(t) || waitsForSlot(t))
		s.tidy(t, room)
	}
}

func (s *siblings) forget(t *v1alpha1.Task) {
	if t.Status.Delegation == nil {
		return
	}
	room := s.of(t)
	room.forget(t)
	s.tidy(t, room)
}

// tidy drops a ledger in which nothing is noted.
func (s *siblings) tidy(t *v1alpha1.Task, room *slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room.empty() {
		delete(s.all, t.Status.Delegation.ParentUID)
	}
}

// wakeBy sets the function that wakes tasks.
func (s *siblings) wakeBy(wake func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
	for _, room := range s.all {
		room.wakeBy(wake)
	}
}
