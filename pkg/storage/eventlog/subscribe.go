// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"sync"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// entry is one published change on its way to readers: an event, or a deletion of
// many. It is shared by all of them and never changed.
type entry struct {
	posting
	id      *identity
	session string
	header  header
	gone    *deletion // nil for an event

	once  sync.Once
	event *v1alpha1.ExecutionEvent
}

// object returns the event as stored. It is shared: copy before changing.
func (e *entry) object() *v1alpha1.ExecutionEvent {
	e.once.Do(func() { e.id.dress(e.event, e.seq, e.header) })
	return e.event
}

// topic is what a subscriber listens to. A change is handed to the subscribers
// of its stream's task name, its session, its namespace and of everything, so
// that publishing costs what is delivered, not what is open.
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
	// topicSessions is every session of a namespace: events of any may leave.
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
	overflow bool   // something was not queued: read from the store
	since    uint64 // everything at or below was taken, when overflow is set
	missed   int64  // how many events, since overflow
	isCut    bool
}

// empty drops what is queued. What comes from now on is queued again.
func (s *subscriber) empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.overflow, s.missed = nil, false, 0
}

// hub knows who listens to what. shared.mu guards it.
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
	for _, t := range [...]topic{{kind: topicAll}, {topicNamespace, e.id.ns, ""}, {topicTask, e.id.ns, e.id.task}, session} {
		for s := range h[t] {
			s.push(e)
		}
	}
}

// push queues a change that the filter may let through.
func (s *subscriber) push(e *entry) {
	count := int64(1)
	if e.gone != nil {
		if !s.filter.takesDeletion(e.gone) {
			return
		}
		count = e.gone.count()
	} else if !s.filter.takes(&e.posting, e.id, e.session) {
		return
	}
	s.mu.Lock()
	if s.overflow || len(s.queue) >= s.limit {
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

// take returns up to n changes from the queue. When some were not queued it
// returns none, and the revision up to which all were taken.
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
