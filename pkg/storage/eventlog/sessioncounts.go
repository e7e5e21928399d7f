// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// SessionCount counts the kept events of a session's timeline, as Count does those of a stream. Seqs are cursors. A
// timeline is a series of parts of streams, and each costs a few reads, whatever its length. So the cost grows with how often one
// task's events follow another's, and not with the number of events.
func (r *Reader) SessionCount(ctx context.Context, namespace, session string, types []v1alpha1.EventType, buckets int) (*Counts, error) {
	f, err := newFilter(&Query{Namespace: namespace, Session: session, Types: types})
	if err != nil {
		return nil, fmt.Errorf("count events of session %s/%s: %w", namespace, session, err)
	}
	c, err := unpurged(r.shared, func() (*Counts, error) { return countSession(ctx, r, f, min(buckets, MaxBuckets)) })
	if err != nil {
		return nil, fmt.Errorf("count events of session %s/%s: %w", namespace, session, err)
	}
	return c, nil
}

// part is a series of events that are neighbours both in a session's timeline and in their stream.
type part struct {
	stream      *counting
	first, last int64 // seqs
	cursor      int64 // of the first
	counts      tally
}

func (p *part) cursorOf(seq int64) int64 { return p.cursor + seq - p.first }

// sessionCounting counts the events of a timeline up to a cursor.
type sessionCounting struct {
	*shared
	*filter
	latest  int64
	entries engine.Iter          // of the timeline
	streams map[uint64]*counting // by number; nil for one that is gone
}

func countSession(ctx context.Context, r *Reader, f *filter, buckets int) (out *Counts, err error) {
	out = &Counts{Types: map[v1alpha1.EventType]int64{}, Severities: map[v1alpha1.EventSeverity]int64{}}
	if f.none {
		return out, nil
	}
	s := &sessionCounting{shared: r.shared, filter: f, streams: map[uint64]*counting{}}
	if s.latest, err = r.latestCursor(f.ns, f.session); err != nil || s.latest == 0 {
		return out, err
	}
	out.Head.LatestSeq = s.latest
	if s.entries, err = r.engine.NewIter(sessionKey(f.ns, f.session, 1), sessionKey(f.ns, f.session, s.latest+1)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.entries.Close()) }()
	parts, err := s.parts(ctx)
	if err != nil || len(parts) == 0 {
		return out, err
	}
	var all tally
	for i := range parts {
		all.plus(&parts[i].counts, 1)
	}
	out.Head.Oldest, out.Total = parts[0].cursor, all.total(f.types)
	out.Types, out.Severities = all.split()
	oldest, newest := &parts[0], &parts[len(parts)-1]
	first, err := oldest.stream.headerOf(oldest.first)
	if err != nil {
		return nil, err
	}
	last, err := newest.stream.headerOf(newest.last)
	if err != nil {
		return nil, err
	}
	out.First, out.Last = time.UnixMicro(first.created), time.UnixMicro(last.created)
	if buckets <= 0 {
		return out, nil
	}
	d := newDivision(first.created, last.created, buckets)
	for i := range parts {
		if err := errors.Join(ctx.Err(), s.divide(d, &parts[i])); err != nil {
			return nil, err
		}
	}
	out.Buckets = d.list(f)
	return out, nil
}

// parts divides the timeline into parts of streams, without the events that are gone.
func (s *sessionCounting) parts(ctx context.Context) (list []part, err error) {
	for ok := s.entries.First(); ok; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := parseSession(s.entries.Key(), s.entries.Value())
		if err != nil {
			return nil, err
		}
		c, err := s.streamOf(ctx, p.no)
		if err != nil {
			return nil, err
		}
		n := int64(1)
		if c != nil {
			if n, err = s.neighbours(&p, c.last); err != nil {
				return nil, err
			}
			if first, last := max(p.seq, c.oldest), p.seq+n-1; c.deleted == 0 && first <= last {
				list = append(list, part{stream: c, first: first, last: last, cursor: p.cursor + first - p.seq})
			}
		}
		ok = s.entries.SeekGE(sessionKey(s.ns, s.session, p.cursor+n))
	}
	if err := s.entries.Error(); err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].counts, err = s.count(&list[i], list[i].first, list[i].last); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// streamOf returns the published stream of a number, ready to be counted; nil if it is gone.
func (s *sessionCounting) streamOf(ctx context.Context, no uint64) (*counting, error) {
	if c, ok := s.streams[no]; ok {
		return c, nil
	}
	id, _, ok, err := s.stored(no)
	if err != nil {
		return nil, err
	}
	var c *counting
	if ok {
		v, ok, err := s.byUID(id.uid)
		if err != nil {
			return nil, err
		}
		if ok {
			c = &counting{shared: s.shared, view: v}
			if v.deleted == 0 {
				if err := c.countOlder(ctx); err != nil {
					return nil, err
				}
			}
		}
	}
	s.streams[no] = c
	return c, nil
}

// neighbours returns how many events from an entry on follow each other in the timeline as they do in their stream, which ends
// with last. Cursors and seqs have no holes, so those between two such events are such events, too.
func (s *sessionCounting) neighbours(p *posting, last int64) (int64, error) {
	most := min(last-p.seq, s.latest-p.cursor) + 1
	var problem error
	apart := func(n int64) bool { // whether the event n places further on is another one than in the stream
		if n >= most {
			return true
		}
		v, ok, err := s.engine.Get(sessionKey(s.ns, s.session, p.cursor+n))
		if err != nil || !ok {
			problem = errors.Join(problem, err)
			return true
		}
		other, err := parseSession(sessionKey(s.ns, s.session, p.cursor+n), v)
		problem = errors.Join(problem, err)
		return other.no != p.no || other.seq != p.seq+n
	}
	if !apart(most - 1) { // mostly all of the stream
		return most, problem
	}
	step := int64(1)
	for !apart(step) {
		step *= 2
	}
	n := sort.Search(int(step-step/2), func(i int) bool { return apart(step/2 + int64(i)) })
	return step/2 + int64(n), problem
}

// count returns the counts of some events of a part: from the marks between them, and from the entries before the first and
// after the last of these marks.
func (s *sessionCounting) count(p *part, first, last int64) (sum tally, err error) {
	c := p.stream
	from, to := (first-1+markEvery-1)/markEvery*markEvery, last/markEvery*markEvery
	if from < first && first == c.oldest && first > 1 { // its mark may have left with the events before it
		from += markEvery
	}
	if last == c.last {
		to = last
	}
	if from >= to {
		err = s.add(&sum, p, first, last)
		return sum, err
	}
	for _, end := range []struct{ seq, times int64 }{{to, 1}, {from, -1}} {
		t, err := c.upTo(end.seq)
		if err != nil {
			return tally{}, err
		}
		sum.plus(&t, end.times)
	}
	err = errors.Join(s.add(&sum, p, first, from), s.add(&sum, p, to+1, last))
	return sum, err
}

// add counts events one by one, if there are any.
func (s *sessionCounting) add(sum *tally, p *part, first, last int64) error {
	if first > last {
		return nil
	}
	end := p.cursorOf(last)
	for ok := s.entries.SeekGE(sessionKey(s.ns, s.session, p.cursorOf(first))); ok; ok = s.entries.Next() {
		e, err := parseSession(s.entries.Key(), s.entries.Value())
		if err != nil {
			return err
		}
		if e.cursor > end {
			return nil
		}
		sum.count(e.typ, e.sev, 1)
	}
	return s.entries.Error()
}

// divide counts the events of a part in buckets.
func (s *sessionCounting) divide(d *division, p *part) error {
	a, err := bucketOf(d, p, p.first)
	if err != nil {
		return err
	}
	b, err := bucketOf(d, p, p.last)
	if err != nil {
		return err
	}
	return s.halve(d, p, stretch{p.first, p.last, a, b}, &p.counts)
}

// stretch is some events of a part, with the buckets of the first and the last.
type stretch struct {
	first, last int64
	a, b        int
}

// halve counts a stretch in buckets: by bisection at a mark while it is long, and then bucket by bucket.
func (s *sessionCounting) halve(d *division, p *part, of stretch, counts *tally) error {
	if of.a == of.b {
		d.add(of.a, p.cursorOf(of.first), counts)
		return nil
	}
	if of.last-of.first < 2*markEvery {
		return s.split(d, p, of)
	}
	middle := (of.first + of.last) / 2 / markEvery * markEvery
	left, err := s.count(p, of.first, middle)
	if err != nil {
		return err
	}
	right := *counts
	right.plus(&left, -1)
	a, err := bucketOf(d, p, middle)
	if err != nil {
		return err
	}
	b, err := bucketOf(d, p, middle+1)
	if err != nil {
		return err
	}
	if err := s.halve(d, p, stretch{of.first, middle, of.a, a}, &left); err != nil {
		return err
	}
	return s.halve(d, p, stretch{middle + 1, of.last, b, of.b}, &right)
}

// split counts a short stretch bucket by bucket.
func (s *sessionCounting) split(d *division, p *part, of stretch) (err error) {
	for first, bucket := of.first, of.a; first <= of.last; {
		n := sort.Search(int(of.last-first), func(i int) bool {
			other, problem := bucketOf(d, p, first+1+int64(i))
			err = errors.Join(err, problem)
			return other > bucket
		})
		if err != nil {
			return err
		}
		var counts tally
		if err := s.add(&counts, p, first, first+int64(n)); err != nil {
			return err
		}
		d.add(bucket, p.cursorOf(first), &counts)
		if first += int64(n) + 1; first > of.last {
			return nil
		}
		if bucket, err = bucketOf(d, p, first); err != nil {
			return err
		}
	}
	return nil
}

// bucketOf returns the bucket of an event.
func bucketOf(d *division, p *part, seq int64) (int, error) {
	h, err := p.stream.headerOf(seq)
	return d.of(h.created), err
}
