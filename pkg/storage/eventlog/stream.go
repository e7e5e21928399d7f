// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"container/list"
	"context"
	"encoding/binary"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Stream names the stream of a task. Its identity is UID; a re-created task of
// the same name has another stream.
type Stream struct {
	Namespace, Task string
	UID             types.UID
	// Session is the task's session, whose timeline the events join; may be empty.
	Session string
}

// String is namespace/task, for errors.
func (s Stream) String() string { return s.Namespace + "/" + s.Task }

func (s Stream) check() error {
	if s.Namespace == "" || s.Task == "" || s.UID == "" ||
		!validName(s.Namespace) || !validName(s.Task) || !validName(string(s.UID)) || !validName(s.Session) {
		return ErrBadStream
	}
	return nil
}

// state is the part of a head that changes.
type state struct {
	last     int64  // newest seq
	changed  uint64 // revision of the last change
	oldest   int64  // first seq that is kept
	terminal uint8  // type of the terminal event, 0 while open
	end      int64  // its seq
	deleted  uint64 // revision of the first event's deletion, 0 while live
	session  string // first session that an event had
	mixed    bool   // events had more than one session
	bytes    int64  // of all events that were appended since they are counted
	held     int64  // what the stream has in the total of its namespace
}

// head is a stream in memory. Its two states differ while commits are on their way.
type head struct {
	identity
	sequenced, published state
	exists               bool // published at all
	inflight             int  // commits between Sequence and Publish; such a head is not evicted
	// keys are the de-duplication keys of those commits, which the store need not show yet.
	keys map[string]int64
	lru  *list.Element
}

// cursor is a session's head in memory.
type cursor struct {
	ns, session          string
	sequenced, published int64
	inflight             int
	lru                  *list.Element
}

// heads caches stream and session heads, the least recently used going first.
// Only the commit leader fills it, so that an entry never hides a newer write.
type heads struct {
	limit    int
	order    list.List // of *head and *cursor, most recent first
	streams  map[types.UID]*head
	live     map[taskName]*head // published and not deleted
	sessions map[taskName]*cursor
	// names are the live streams as sequenced, where commits on their way differ
	// from the store; nil for none.
	names map[taskName]*nameChange
}

// nameChange is the sequenced state of a name.
type nameChange struct {
	head     *head // nil: no live stream
	inflight int
}

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

// evictKeep is how many of the most recent entries stay whatever the limit: a
// commit being sequenced uses up to three of them before they are in flight.
const evictKeep = 4

// evict drops what is over the limit and not in flight. It looks at a few
// entries only; what stays over the limit goes at a later call.
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

// rename notes that commits on their way make s the live stream of name.
func (h *heads) rename(name taskName, s *head) {
	c := h.names[name]
	if c == nil {
		c = &nameChange{}
		h.names[name] = c
	}
	c.head = s
	c.inflight++
}

// renamed ends one of them.
func (h *heads) renamed(name taskName) {
	if c := h.names[name]; c != nil {
		if c.inflight--; c.inflight == 0 {
			delete(h.names, name)
		}
	}
}

const headFormat = 1

// encodeHead is the record of a stream.
func encodeHead(id *identity, s *state) []byte {
	b := []byte{headFormat, s.terminal, boolByte(s.mixed)}
	b = binary.AppendUvarint(b, uint64(s.last))
	b = binary.AppendUvarint(b, s.changed)
	b = binary.AppendUvarint(b, s.deleted)
	for _, text := range [...]string{string(id.uid), id.ns, id.task, s.session} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(s.end))
	b = binary.AppendUvarint(b, uint64(s.oldest))
	b = binary.AppendUvarint(b, uint64(s.bytes))
	return binary.AppendUvarint(b, uint64(s.held))
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// decodeHead reads the record of stream no.
func decodeHead(no uint64, b []byte) (id identity, s state, err error) {
	fail := func(err error) (identity, state, error) {
		return identity{}, state{}, &CorruptError{headKey(no), err}
	}
	if len(b) < 3 || b[0] != headFormat || int(b[1]) >= len(typeNames) {
		return fail(errFormat)
	}
	s.terminal, s.mixed = b[1], b[2] != 0
	b = b[3:]
	var numbers [3]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return fail(errShort)
		}
		numbers[i], b = v, b[n:]
	}
	var words [4]string
	for i := range words {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return fail(errShort)
		}
		words[i], b = string(b[n:n+int(v)]), b[n+int(v):]
	}
	s.last, s.changed, s.deleted, s.session = int64(numbers[0]), numbers[1], numbers[2], words[3]
	s.oldest = 1
	if s.terminal != 0 {
		s.end = s.last
	}
	if len(b) > 0 { // heads have these since events may leave or follow the end
		for _, v := range [...]*int64{&s.end, &s.oldest} {
			u, n := binary.Uvarint(b)
			if n <= 0 {
				return fail(errShort)
			}
			*v, b = int64(u), b[n:]
		}
	}
	for _, v := range [...]*int64{&s.bytes, &s.held} { // since streams have limits, and since namespaces do
		if len(b) == 0 {
			break
		}
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return fail(errShort)
		}
		*v, b = int64(u), b[n:]
	}
	return identity{no, types.UID(words[0]), words[1], words[2]}, s, nil
}

// stored reads the head of stream no from the store, which may show what is not
// published yet.
func (l *Log) stored(no uint64) (identity, state, bool, error) {
	b, ok, err := l.engine.Get(headKey(no))
	if err != nil || !ok {
		return identity{}, state{}, false, err
	}
	id, s, err := decodeHead(no, b)
	return id, s, err == nil, err
}

// number reads a stream number from the store.
func (l *Log) number(key []byte) (uint64, bool, error) {
	b, ok, err := l.engine.Get(key)
	if err != nil || !ok {
		return 0, false, err
	}
	if len(b) != 8 {
		return 0, false, &CorruptError{key, errShort}
	}
	return binary.BigEndian.Uint64(b), true, nil
}

// view is a stream as readers see it.
type view struct {
	identity
	state
}

// byUID returns the published state of a stream, deleted or not.
func (l *Log) byUID(uid types.UID) (view, bool, error) {
	return l.find(uidKey(uid), func() (*head, bool) {
		h, ok := l.heads.streams[uid]
		return h, ok
	})
}

// byTask returns the published state of the live stream of a task name.
func (l *Log) byTask(ns, task string) (view, bool, error) {
	name := taskName{ns, task}
	v, ok, err := l.find(nameKey(ns, task), func() (*head, bool) {
		if h := l.heads.live[name]; h != nil {
			return h, true
		}
		_, changing := l.heads.names[name]
		return nil, changing // by a commit that nobody has seen
	})
	return v, ok && v.deleted == 0, err
}

// find looks into the cache and then into the store. A head in the store that is
// newer than what is published belongs to a commit on its way, which the cache
// holds: look again.
func (l *Log) find(key []byte, cached func() (*head, bool)) (view, bool, error) {
	for {
		l.mu.Lock()
		h, ok := cached()
		if ok {
			defer l.mu.Unlock()
			if h == nil || !h.exists {
				return view{}, false, nil
			}
			return view{h.identity, h.published}, true, nil
		}
		l.mu.Unlock()
		no, ok, err := l.number(key)
		if err != nil || !ok {
			return view{}, false, err
		}
		id, s, ok, err := l.stored(no)
		if err != nil {
			return view{}, false, err
		}
		if !ok {
			return view{}, false, nil // purged in between
		}
		if s.changed <= l.engine.Revision() {
			return view{id, s}, true, nil
		}
	}
}

// identity returns the identity of stream no, which must exist.
func (l *Log) identity(no uint64) (*identity, error) {
	if v, ok := l.idents.Get(no); ok {
		return v.(*identity), nil //nolint:forcetypeassert // only these are put
	}
	id, _, ok, err := l.stored(no)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("stream %d: %w", no, ErrNotFound)
	}
	l.idents.Add(no, &id)
	return &id, nil
}

// Head tells where a stream is.
type Head struct {
	LatestSeq int64 // 0 before the first event
	// Oldest is the first seq that is kept; those below left with Trim. It is 1
	// while nothing left, and 0 before the first event.
	Oldest int64
	// Closed tells that there is a terminal event. Only late events follow it.
	Closed bool
	// Terminal and TerminalSeq are the terminal event, when closed. It is always kept.
	Terminal    v1alpha1.EventType
	TerminalSeq int64
	Deleted     bool
}

func (v *view) head() Head {
	return Head{v.last, v.oldest, v.terminal != 0, typeNames[v.terminal], v.end, v.deleted != 0}
}

// Head returns the published state of a stream. A stream without events is not
// an error.
func (l *Log) Head(_ context.Context, s Stream) (Head, error) {
	v, ok, err := l.byUID(s.UID)
	if err != nil || !ok {
		return Head{}, err
	}
	return v.head(), nil
}
