// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// noteChild notes whether a delegated task has yet to end. With its first such child a parent gives its slot away, and
// with the end of the last it has one again, even if more tasks than the limit then run. A tree can therefore always go on if there is
// room for one task.
func (s *slots) noteChild(t *v1alpha1.Task, live bool) {
	d := t.Status.Delegation
	if d == nil {
		return
	}
	kids := s.kids[d.ParentUID]
	if kids[t.UID] == live {
		return
	}
	if live {
		if kids == nil {
			kids = map[types.UID]bool{}
			s.kids[d.ParentUID] = kids
		}
		kids[t.UID] = true
		if h, ok := s.held[d.ParentUID]; ok && h.version == "" {
			s.lent[d.ParentUID] = h
			s.release(d.ParentUID)
		}
		return
	}
	if delete(kids, t.UID); len(kids) > 0 {
		return
	}
	delete(s.kids, d.ParentUID)
	if h, ok := s.lent[d.ParentUID]; ok {
		delete(s.lent, d.ParentUID)
		s.hold(d.ParentUID, h)
	}
}

// heirs returns, by namespace, the next of the delegated tasks of which no sibling is at work. They go before all others of the
// namespace, whatever their priority, one for each parent: the parent gave its slot away to wait for them and its time runs,
// so a tree that has begun must not wait behind all that have not.
func (s *slots) heirs(now time.Time) map[string]waiter {
	var first map[string]waiter
	for _, kids := range s.kids {
		if s.anyAtWork(kids) {
			continue
		}
		for kid := range kids {
			w, ok := s.waiting.places[kid]
			if !ok {
				continue
			}
			if next, ok := first[w.key.Namespace]; ok && !w.before(next, now) {
				continue
			}
			if first == nil {
				first = map[string]waiter{}
			}
			first[w.key.Namespace] = w
		}
	}
	return first
}

// anyAtWork reports whether one of the tasks has a slot, or waits for children of its own.
func (s *slots) anyAtWork(tasks map[types.UID]bool) bool {
	for uid := range tasks {
		if _, ok := s.held[uid]; ok || len(s.kids[uid]) > 0 {
			return true
		}
	}
	return false
}
