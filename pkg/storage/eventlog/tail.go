// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Tail follows a task's stream by seq, or a session's timeline by cursor. It is
// for one reader and not safe for concurrent use.
type Tail struct {
	reader  *Reader
	stream  Stream
	session bool
	want    *filter // what is returned
	sub     *subscriber
	live    bool
	after   int64
	head    Head
	latest  int64
	gone    bool // the stream was deleted after the events that were returned
}

// tailLimit is how many events one Next returns at most.
const tailLimit = 256

// TailTask follows a stream after seq after. It returns events of the given types, or of all types if there
// are none. The stream need not have an event yet. The caller must close the Tail.
func (r *Reader) TailTask(s Stream, after int64, types []v1alpha1.EventType) (*Tail, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("follow %s: %w", s, err)
	}
	want, err := newFilter(&Query{Namespace: s.Namespace, Task: s.Task, Types: types})
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", s, err)
	}
	want.uid = s.UID
	wake := *want
	if wake.types != 0 {
		for _, t := range event.Types() {
			if event.Terminal(t) {
				wake.types |= 1 << typeCodes[t] // the end of the stream must be noticed with any filter
			}
		}
	}
	return r.tail(&Tail{reader: r, stream: s, want: want, after: max(after, 0)}, &wake), nil
}

// TailSession follows a session's timeline after cursor after. It returns events of the given types, or of
// all types if there are none. The caller must close the Tail.
func (r *Reader) TailSession(namespace, session string, after int64, types []v1alpha1.EventType) (*Tail, error) {
	if namespace == "" || session == "" || !validName(namespace) || !validName(session) {
		return nil, fmt.Errorf("follow session %s/%s: %w", namespace, session, ErrBadStream)
	}
	f, err := newFilter(&Query{Namespace: namespace, Session: session, Types: types})
	if err != nil {
		return nil, fmt.Errorf("follow session %s/%s: %w", namespace, session, err)
	}
	s := Stream{Namespace: namespace, Session: session}
	return r.tail(&Tail{reader: r, stream: s, session: true, want: f, after: max(after, 0)}, f), nil
}

func (r *Reader) tail(t *Tail, wake *filter) *Tail {
	t.sub = &subscriber{filter: wake, limit: r.opts.WatchQueue, wake: make(chan struct{}, 1)}
	r.attach(t.sub)
	return t
}

// Close ends the Tail.
func (t *Tail) Close() { t.reader.detach(t.sub) }

// Next waits until there is something new and returns it: events, gaps, or a change of the stream's head
// without a matching event. The Next field of the page is where a later Tail resumes. Gaps appear if the
// Tail began, or fell back, before the oldest event that is kept. Next returns ErrDeleted when the stream
// was deleted, ErrShutdown when the log is closed, and ctx's error.
func (t *Tail) Next(ctx context.Context) (*StreamPage, error) {
	for {
		p, err := t.read()
		if err != nil {
			return nil, err
		}
		if len(p.Events) > 0 || len(p.Gaps) > 0 || p.Head != t.head {
			t.head = p.Head
			return p, nil
		}
		if !t.live {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.reader.watches.stopping:
			return nil, ErrShutdown
		case <-t.sub.wake:
		}
	}
}

// read returns what is new, from the mailbox or, if that overflowed, from the store.
func (t *Tail) read() (*StreamPage, error) {
	if t.gone {
		return nil, ErrDeleted
	}
	if t.live {
		entries, overflow, _ := t.sub.take(tailLimit)
		if !overflow {
			return t.page(entries)
		}
		t.reader.attach(t.sub)
		t.live = false
	}
	var p *StreamPage
	var err error
	if t.session {
		p, err = t.reader.sessionPage(t.want, t.after, tailLimit)
	} else {
		p, err = t.reader.taskPage(t.stream, t.want, t.after, tailLimit)
	}
	if err != nil {
		return nil, err
	}
	t.after, t.latest = p.Next, p.Latest
	t.live = p.Next >= p.Latest
	return p, nil
}

// page makes a page of the entries that the mailbox held.
func (t *Tail) page(entries []*entry) (*StreamPage, error) {
	p := &StreamPage{Events: []*v1alpha1.ExecutionEvent{}, Head: t.head}
	for _, e := range entries {
		if e.gone != nil {
			if !t.session && e.gone.whole {
				t.gone = true
				break
			}
			continue // removed events were read before
		}
		at := e.seq
		if t.session {
			at = e.cursor
		}
		if at <= t.after {
			continue
		}
		t.after, t.latest = at, max(t.latest, at)
		if !t.session {
			p.Head.LatestSeq, p.Head.Oldest = at, max(p.Head.Oldest, 1)
			if typ := typeNames[e.typ]; event.Terminal(typ) {
				p.Head.Closed, p.Head.Terminal, p.Head.TerminalSeq = true, typ, at
			}
		}
		if !t.want.takesCodes(&e.posting) {
			continue
		}
		c := *e.object()
		if t.session {
			sessionView(&c, e.cursor)
		}
		p.Events = append(p.Events, &c)
	}
	if t.gone && len(p.Events) == 0 && p.Head == t.head {
		return nil, ErrDeleted
	}
	p.Latest, p.Next = t.latest, t.after
	return p, nil
}
