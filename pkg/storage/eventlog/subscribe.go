// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"sync"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// entry is one published change on its way to readers: one event, or one deletion of many events. All
// readers share it, and it never changes.
type entry struct {
	posting
	id      *identity
	session string
	header  header
	gone    *deletion // nil for an event
	skips   bool      // numbers before it were left out, which readers learn from the store

	once  sync.Once
	event *v1alpha1.ExecutionEvent
}

// object returns the event as stored. It is shared: copy before changing.
func (e *entry) object() *v1alpha1.ExecutionEvent {
	e.once.Do(func() { e.id.dress(e.event, e.seq, e.header) })
	return e.event
}

// topic is what a subscriber listens to. A change is delivered to the subscribers of its stream's task
// name, its session, its namespace and of all events. The cost of publishing therefore depends on the
// deliveries, not on the number of subscribers.
type topic struct {
	kind     topicKind
	ns, name string
}

type topicKind uint8

const (
	topicAll topicKind = iota
	topicNamespace
	topicTask
	topicSession
	// topicTree is a task with all tasks below it.
	topicTree
	// topicSessions is every session of a namespace: a deletion may concern any of them.
	topicSessions
)

// subscriber is the mailbox of one reader. Lock order: shared.mu, then mu.
type subscriber struct {
	filter *filter
	limit  int   // of queue
	maxLag int64 // after which cut is closed; 0: never
	wake   chan struct{}
	cut    chan struct{}

	mu       sync.Mutex
	queue    []*entry
	overflow bool   // something was not queued and must be read from the store
	since    uint64 // if overflow is set, everything at or below was taken
	missed   int64  // how many events, since overflow
	isCut    bool
}

// empty drops the queued changes. Later changes are queued again.
func (s *subscriber) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.overflow, s.missed = nil, false, 0
}

// hub maps topics to their subscribers. shared.mu guards it.
type hub map[topic]map[*subscriber]struct{}

func (h hub) add(s *subscriber) {
	for _, t := range s.filter.topics() {
		if h[t] == nil {
			h[t] = map[*subscriber]struct{}{}
		}
		h[t][s] = struct{}{}
	}
}

func (h hub) remove(s *subscriber) {
	for _, t := range s.filter.topics() {
		delete(h[t], s)
		if len(h[t]) == 0 {
			delete(h, t)
		}
	}
}

// deliver hands a change to the subscribers. It never waits.
func (h hub) deliver(e *entry) {
	if len(h) == 0 {
		return
	}
	session := topic{topicSession, e.id.ns, e.session}
	if e.gone != nil {
		session = topic{topicSessions, e.id.ns, ""}
	}
	for _, t := range [...]topic{{kind: topicAll}, {topicNamespace, e.id.ns, ""}, {topicTask, e.id.ns, e.id.task}, {topicTree, e.id.ns, e.id.rootTask()}, session} {
		for s := range h[t] {
			s.push(e)
		}
	}
}

// push queues a change that the filter may select.
func (s *subscriber) push(e *entry) {
	count := int64(1)
	if e.gone != nil {
		if !s.filter.takesDeletion(e.gone) {
			return
		}
		count = e.gone.count()
	} else if !e.skips && !s.filter.takes(&e.posting, e.id, e.session) {
		return
	}
	s.mu.Lock()
	if s.overflow || e.skips || len(s.queue) >= s.limit {
		if !s.overflow {
			s.since = e.rev - 1
			if len(s.queue) > 0 {
				s.since = s.queue[0].rev - 1
			}
		}
		s.queue, s.overflow = nil, true
		s.missed += count
		if s.maxLag > 0 && s.missed > s.maxLag && !s.isCut {
			s.isCut = true
			close(s.cut)
		}
	} else {
		s.queue = append(s.queue, e)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns up to n changes from the queue. If some changes were not queued, it returns overflow and the
// revision up to which all were taken, but no changes.
func (s *subscriber) take(n int) (_ []*entry, overflow bool, since uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overflow {
		return nil, true, s.since
	}
	n = min(n, len(s.queue))
	taken := s.queue[:n:n]
	if n == len(s.queue) {
		s.queue = nil
	} else {
		s.queue = s.queue[n:]
	}
	return taken, false, 0
}
