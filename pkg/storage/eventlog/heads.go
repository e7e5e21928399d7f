// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"container/list"

	"k8s.io/apimachinery/pkg/types"
)

// heads caches stream and session heads and evicts the least recently used first. Only the commit leader
// fills it, so that an entry never hides a newer write.
type heads struct {
	limit    int
	order    list.List // of *head and *cursor, most recent first
	streams  map[types.UID]*head
	live     map[taskName]*head // published and not deleted
	sessions map[taskName]*cursor
	// names holds the sequenced live streams of those names for which commits in flight differ from the
	// store. A nil head means that the name has no live stream.
	names map[taskName]*nameChange
}

// nameChange is the sequenced state of a task name.
type nameChange struct {
	head     *head // nil: no live stream
	inflight int
}

// taskName is the key by which a stream or a session is looked up by name.
type taskName struct{ ns, task string }

func (h *heads) init(limit int) {
	h.limit = limit
	h.order.Init()
	h.streams, h.live = map[types.UID]*head{}, map[taskName]*head{}
	h.sessions, h.names = map[taskName]*cursor{}, map[taskName]*nameChange{}
}

func (h *heads) add(s *head) {
	s.lru = h.order.PushFront(s)
	h.streams[s.uid] = s
	if s.exists && s.published.deleted == 0 {
		h.live[taskName{s.ns, s.task}] = s
	}
	h.evict()
}

func (h *heads) addSession(c *cursor) {
	c.lru = h.order.PushFront(c)
	h.sessions[taskName{c.ns, c.session}] = c
	h.evict()
}

// evictKeep is how many of the most recent entries stay regardless of the limit: a commit being sequenced
// uses up to three of them before they are in flight.
const evictKeep = 4

// evict drops entries that are over the limit and not in flight. It looks at a few entries only; a later
// call drops the rest.
func (h *heads) evict() {
	e := h.order.Back()
	for tries := min(8, h.order.Len()-evictKeep); h.order.Len() > h.limit && tries > 0; tries-- {
		prev := e.Prev()
		switch v := e.Value.(type) {
		case *head:
			if v.inflight == 0 {
				h.drop(v)
			}
		case *cursor:
			if v.inflight == 0 {
				h.order.Remove(e)
				delete(h.sessions, taskName{v.ns, v.session})
			}
		}
		e = prev
	}
}

func (h *heads) drop(s *head) {
	h.order.Remove(s.lru)
	delete(h.streams, s.uid)
	if name := (taskName{s.ns, s.task}); h.live[name] == s {
		delete(h.live, name)
	}
}

// rename notes that a commit in flight makes s the live stream of name.
func (h *heads) rename(name taskName, s *head) {
	c := h.names[name]
	if c == nil {
		c = &nameChange{}
		h.names[name] = c
	}
	c.head = s
	c.inflight++
}

// renamed notes that one of those commits is published.
func (h *heads) renamed(name taskName) {
	if c := h.names[name]; c != nil {
		if c.inflight--; c.inflight == 0 {
			delete(h.names, name)
		}
	}
}
