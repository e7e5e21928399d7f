// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// shared is the state that the writing and the reading side share: the data in memory and access to the
// records on disk.
type shared struct {
	records
	opts Options

	// mu guards all fields below. It is never held while reading or writing the store, or while waiting. A
	// subscriber's own lock is taken after it.
	mu sync.Mutex
	// older is held while events are counted that were not counted when they were stored. It is taken before mu.
	older sync.Mutex
	// heads are filled by the commit leader. Sequence changes the sequenced state of a head, and Publish
	// the published state.
	heads heads
	// floor is the oldest revision that can be read. The purge raises it.
	floor uint64
	// left are the deletions that are not yet purged. Publish adds them and the purge removes them.
	left departures
	// hub delivers published changes to readers.
	hub hub
}

func newShared(e engine.Engine, o Options) *shared {
	s := &shared{records: records{engine: e, idents: lru.New(o.CachedStreams)}, opts: o}
	s.heads.init(o.CachedStreams)
	s.left.init()
	s.hub = hub{}
	return s
}

// load reads the floor, which is raised in a restored store, and the deletions that are not yet purged.
func (s *shared) load() error {
	floor, _, err := s.number([]byte(spaceFloor))
	if err != nil {
		return err
	}
	s.floor = max(floor, s.engine.Base())
	it, err := s.engine.NewIter([]byte(spaceDeleted), after([]byte(spaceDeleted)))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		d, err := decodeDeletion(it.Key(), it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		s.left.remember(d)
	}
	return it.Close()
}

// view is a stream as readers see it.
type view struct {
	identity
	state
}

// byUID returns the published state of a stream, deleted or not.
func (s *shared) byUID(uid types.UID) (view, bool, error) {
	return s.find(uidKey(uid), func() (*head, bool) {
		h, ok := s.heads.streams[uid]
		return h, ok
	})
}

// byTask returns the published state of the live stream of a task name.
func (s *shared) byTask(ns, task string) (view, bool, error) {
	name := taskName{ns, task}
	v, ok, err := s.find(nameKey(ns, task), func() (*head, bool) {
		if h := s.heads.live[name]; h != nil {
			return h, true
		}
		_, changing := s.heads.names[name]
		return nil, changing // by a commit that is not yet published
	})
	return v, ok && v.deleted == 0, err
}

// find looks into the cache and then into the store. If the head in the store is newer than the published
// revision, it belongs to a commit in flight, and the cache holds it: find then looks again.
func (s *shared) find(key []byte, cached func() (*head, bool)) (view, bool, error) {
	for {
		s.mu.Lock()
		h, ok := cached()
		if ok {
			defer s.mu.Unlock()
			if h == nil || !h.exists {
				return view{}, false, nil
			}
			return view{h.identity, h.published}, true, nil
		}
		s.mu.Unlock()
		no, ok, err := s.number(key)
		if err != nil || !ok {
			return view{}, false, err
		}
		id, st, ok, err := s.stored(no)
		if err != nil {
			return view{}, false, err
		}
		if !ok {
			return view{}, false, nil // purged in between
		}
		if st.changed <= s.engine.Revision() {
			return view{id, st}, true, nil
		}
	}
}

// latestCursor returns the published cursor of a session.
func (s *shared) latestCursor(ns, session string) (int64, error) {
	cached := func() (int64, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c := s.heads.sessions[taskName{ns, session}]
		if c == nil {
			return 0, false
		}
		return c.published, true
	}
	if n, ok := cached(); ok {
		return n, nil
	}
	last, _, err := s.number(cursorKey(ns, session))
	if err != nil {
		return 0, err
	}
	if n, ok := cached(); ok {
		return n, nil // the store may show a commit in flight
	}
	return int64(last), nil
}

// streamsSince returns the streams of a task name from which changes after revision from may be read: the
// deleted ones that began at or before revision to and still had an event at revision from, and the live
// one.
func (s *shared) streamsSince(ns, task string, from, to uint64) ([]view, error) {
	live, ok, err := s.byTask(ns, task)
	if err != nil {
		return nil, err
	}
	var streams []view
	s.mu.Lock()
	for _, d := range s.left.byName[taskName{ns, task}] {
		if d.whole && d.no <= to && d.end() > from {
			streams = append(streams, view{d.identity, state{last: d.last}})
		}
		if ok && d.whole && d.no == live.no {
			ok = false // deleted since it was looked up
		}
	}
	s.mu.Unlock()
	if ok {
		streams = append(streams, live)
	}
	return streams, nil
}

// goneAt reports whether an event was deleted at or before rev.
func (s *shared) goneAt(p *posting, rev uint64) bool {
	if s.left.none() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left.goneAt(p, rev)
}

// oldestAt returns a seq of stream no such that no event below it is left at rev.
func (s *shared) oldestAt(no, rev uint64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left.oldestAt(no, rev)
}

// checkFloor returns an ExpiredError if rev can no longer be read. Readers must open their sources before
// they call it, because a purge raises the floor before it removes anything.
func (s *shared) checkFloor(rev uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev < s.floor {
		return &ExpiredError{Revision: rev, Floor: s.floor}
	}
	return nil
}

// purged returns how many deletions were purged since the log was opened.
func (s *shared) purged() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left.forgotten
}

// unpurged calls read and returns its result, and repeats the read if a purge finished meanwhile. Without
// that, an event whose deletion record was purged could look alive or be missing.
func unpurged[T any](s *shared, read func() (T, error)) (T, error) {
	for {
		before := s.purged()
		v, err := read()
		if s.purged() == before {
			return v, err
		}
	}
}

// attach opens a mailbox, or empties an open one, and returns the revision after which it holds every
// change.
func (s *shared) attach(sub *subscriber) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.empty()
	s.hub.add(sub)
	return s.engine.Revision()
}

// detach closes a mailbox.
func (s *shared) detach(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.remove(sub)
}
