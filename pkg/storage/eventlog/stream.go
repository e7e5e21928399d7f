// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"container/list"

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
	// Root is the task at the top of the tree that a delegated task belongs to; empty for other tasks. The first append
	// to a stream records it.
	Root string
	// Agent is the agent of the task; events that name no agent get it. It may be empty.
	Agent string
}

// String is namespace/task, for errors.
func (s Stream) String() string { return s.Namespace + "/" + s.Task }

func (s Stream) check() error {
	if s.Namespace == "" || s.Task == "" || s.UID == "" ||
		!validName(s.Namespace) || !validName(s.Task) || !validName(string(s.UID)) || !validName(s.Session) || !validName(s.Root) {
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
	end      int64  // seq of the terminal event
	deleted  uint64 // revision of the first event's deletion, 0 while live
	session  string // first session that an event had
	mixed    bool   // events had more than one session
	bytes    int64  // of all events appended since bytes are counted
	held     int64  // the stream's share of its namespace's total, in bytes
	counted  int64  // first seq that is counted; an older version stored those before it
	counts   string // a tally of the events from counted on
	skips    []skip // seqs that were left out, in order; never changed in place
}

// head is a stream in memory. Its two states differ while commits are in flight. shared.mu guards the fields that change.
type head struct {
	identity
	// sequenced is what the next commit starts from. Only Sequence changes it.
	sequenced state
	// published is what readers see. Only Publish changes it.
	published state
	exists    bool // published at least once
	inflight  int  // commits between Sequence and Publish; such a head is not evicted
	// keys are the de-duplication keys of commits in flight, which the store may not show yet.
	keys map[string]int64
	// cancelled says whether the sequenced stream has the mark of a cancellation. Only the commit leader uses it.
	cancelled answer
	lru       *list.Element
}

// answer is yes or no, once it is known.
type answer uint8

const (
	unknown answer = iota
	isNot
	is
)

// cursor is a session's last cursor in memory, sequenced and published.
type cursor struct {
	ns, session          string
	sequenced, published int64
	inflight             int
	stale                bool // the next event leaves out some cursors; only the commit leader uses it
	lru                  *list.Element
}

// Head describes the published state of a stream.
type Head struct {
	LatestSeq int64 // 0 before the first event
	// Oldest is the first seq that is kept; Trim removed those below it. It is 1 while nothing was trimmed,
	// and 0 before the first event.
	Oldest int64
	// Closed reports that there is a terminal event. Only late events follow it.
	Closed bool
	// Terminal and TerminalSeq are the terminal event's type and seq, if closed. The event is always kept.
	Terminal    v1alpha1.EventType
	TerminalSeq int64
	Deleted     bool
}

func (v *view) head() Head {
	return Head{v.last, v.oldest, v.terminal != 0, typeNames[v.terminal], v.end, v.deleted != 0}
}

// join notes the session of new events.
func (s *state) join(session string) {
	switch {
	case session == "" || session == s.session:
	case s.session == "":
		s.session = session
	default:
		s.mixed = true
	}
}
