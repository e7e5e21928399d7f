// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// change is what a follower yields.
type change struct {
	event   *v1alpha1.ExecutionEvent
	deleted bool
}

// follower yields every change after a revision that its filter selects, in order and once. It normally
// reads its mailbox. At first, and after the mailbox overflowed, it reads from the store until it has
// caught up. It is not safe for concurrent use.
type follower struct {
	*shared
	filter *filter
	sub    *subscriber

	pos    uint64 // every change at or below was yielded
	target uint64 // the mailbox holds every change after it
	live   bool   // pos has reached target

	backlog []*entry  // taken from the mailbox
	gone    *deletion // being yielded
}

// follow opens a follower after revision from, or after the newest revision if from is 0. The caller must
// end it with stop.
func follow(s *shared, f *filter, from uint64) *follower {
	r := &follower{shared: s, filter: f, sub: &subscriber{
		filter: f, limit: s.opts.WatchQueue, maxLag: s.opts.MaxWatchLag,
		wake: make(chan struct{}, 1), cut: make(chan struct{}),
	}}
	r.target = s.attach(r.sub)
	r.pos = from
	if from == 0 {
		r.pos = r.target
	}
	r.live = r.pos >= r.target
	return r
}

func (r *follower) stop() { r.detach(r.sub) }

// next returns up to n changes without waiting. It returns none when it has caught up.
func (r *follower) next(ctx context.Context, n int) ([]change, error) {
	for ctx.Err() == nil {
		var out []change
		var err error
		switch {
		case r.gone != nil:
			out, err = r.expand(n)
		case !r.live:
			out, err = r.replay(n)
		case len(r.backlog) > 0:
			out = r.drain()
		default:
			var overflow bool
			var since uint64
			if r.backlog, overflow, since = r.sub.take(n); overflow {
				r.pos = max(r.pos, since)
				r.target, r.live = r.attach(r.sub), false
			} else if len(r.backlog) == 0 {
				return nil, nil
			}
		}
		if err != nil {
			// Reading what was purged meanwhile fails in many ways. The floor is the cause of all of them.
			if floor := r.checkFloor(r.pos); floor != nil {
				err = floor
			}
			return nil, err
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, ctx.Err()
}

// drain turns entries taken from the mailbox into changes, up to the first deletion.
func (r *follower) drain() (out []change) {
	for len(r.backlog) > 0 {
		e := r.backlog[0]
		r.backlog = r.backlog[1:]
		if e.gone != nil {
			if e.gone.end() > r.pos {
				r.gone = e.gone
				return out
			}
			continue
		}
		if e.rev <= r.pos {
			continue
		}
		r.pos = e.rev
		if obj := e.object(); r.filter.takesEvent(obj) {
			c := *obj // an encoder sets the kind on the object that it is given
			out = append(out, change{event: &c})
		}
	}
	return out
}

// expand yields the events of a deletion in the order in which they were removed.
func (r *follower) expand(n int) (out []change, err error) {
	d := r.gone
	first := d.first
	if r.pos >= d.rev {
		first += int64(r.pos-d.rev) + 1
	}
	s := newScan(r.shared)
	defer func() { err = errors.Join(err, s.close()) }()
	s.stream(d.no, r.filter, first, d.last)
	s.openData()
	if err := r.checkFloor(d.end() - 1); err != nil {
		return nil, err // purged
	}
	for {
		src := s.next()
		if src == nil {
			if s.err == nil {
				r.pos, r.gone = d.end(), nil
			}
			return out, s.err
		}
		if len(out) == n {
			return out, nil
		}
		p := &src.cur
		if r.filter.takesCodes(p) {
			raw, err := s.record(p)
			if err != nil {
				return nil, err
			}
			e, _, err := d.decode(p.seq, raw)
			if err != nil {
				return nil, err
			}
			if r.filter.takesEvent(e) {
				e.ResourceVersion = strconv.FormatUint(d.of(p.seq), 10)
				out = append(out, change{e, true})
			}
		}
		r.pos = d.of(p.seq)
		s.advance(src)
	}
}

// replay yields changes from the store up to target.
func (r *follower) replay(n int) (out []change, err error) {
	if r.pos >= r.target {
		r.live = true
		return nil, nil
	}
	s := newScan(r.shared)
	defer func() { err = errors.Join(err, s.close()) }()
	if err := r.openReplay(s); err != nil {
		return nil, err
	}
	s.openData()
	deletions := r.deletions()
	if err := r.checkFloor(r.pos); err != nil {
		return nil, err
	}
	for scanned := 0; ; scanned++ {
		src := s.next()
		if s.err != nil {
			return nil, s.err
		}
		if len(deletions) > 0 && (src == nil || deletions[0].rev < src.cur.rev) {
			r.gone = deletions[0]
			return out, nil
		}
		if src == nil || src.cur.rev > r.target {
			r.pos, r.live = r.target, true
			return out, nil
		}
		if len(out) == n || scanned >= r.opts.ScanBudget {
			return out, nil
		}
		e, err := s.pick(r.filter, &src.cur, 0)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out = append(out, change{event: e})
		}
		r.pos = src.cur.rev
		s.advance(src)
	}
}

// openReplay opens the events after pos, each source in revision order.
func (r *follower) openReplay(s *scan) error {
	f := r.filter
	switch {
	case f.none:
	case f.ns == "":
		s.revisions(r.pos + 1)
	case f.task != "":
		streams, err := r.streamsSince(f.ns, f.task, r.pos, r.target)
		if err != nil {
			return err
		}
		for _, v := range streams {
			first, err := r.seqAfter(v.no, v.last, r.pos+1)
			if err != nil {
				return err
			}
			s.stream(v.no, f, first, v.last)
		}
	case f.session != "":
		first, err := r.cursorAfter(f.ns, f.session, r.pos+1)
		if err != nil {
			return err
		}
		s.session(f.ns, f.session, first)
	default:
		s.namespace(f, r.pos+1)
	}
	return s.err
}

// deletions returns the deletions after pos and up to target, by revision.
func (r *follower) deletions() []*deletion {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left.between(r.filter, r.pos, r.target)
}

// progress returns the newest revision if everything up to it was yielded, and otherwise 0.
func (r *follower) progress() uint64 {
	s := r.sub
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.live || r.gone != nil || s.overflow || len(s.queue)+len(r.backlog) > 0 {
		return 0
	}
	rev := r.engine.Revision()
	if r.pos > rev {
		return 0 // the follower began at a revision that was not published yet
	}
	r.pos = rev
	return rev
}
