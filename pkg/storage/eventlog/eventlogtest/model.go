// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// The guarantees, as errors. A failed check returns the guarantee that is broken.
var (
	errBrokeDense        = errors.New("broke Dense: seq grows by one from 1 in every stream, and with the revision")
	errBrokeDurable      = errors.New("broke Durable: an acknowledged event or deletion survives, and nothing else is delivered")
	errBrokeOnce         = errors.New("broke Once: a de-duplication key is stored once in its stream")
	errBrokeTerminal     = errors.New("broke Terminal: nothing but late events follows a terminal event")
	errBrokeSessionOrder = errors.New("broke SessionOrder: a session's cursor grows with the revision and is never given again")
	errBrokeGap          = errors.New("broke Gap: a reader by seq or cursor gets every event after its place, or a gap that names exactly what is no longer kept")
	errBrokeResumable    = errors.New("broke Resumable: a reader gets every change after its revision once and in order")
)

// stored is an event that the log acknowledged.
type stored struct {
	stream  eventlog.Stream
	seq     int64
	rev     uint64
	typ     v1alpha1.EventType
	sev     v1alpha1.EventSeverity
	session string
	key     string
	gone    uint64 // revision of its deletion
}

// happened is one change. Changes are kept in the order of revisions.
type happened struct {
	rev     uint64
	event   *stored
	deleted bool
}

// model is what the log must hold: everything that it acknowledged.
type model struct {
	streams map[types.UID]*stream
	cursors map[string]map[int64]string // by session: event by cursor, ever
	kept    map[string]map[int64]bool   // by session: cursors of the last check
	history []happened
}

type stream struct {
	eventlog.Stream
	events  []*stored
	oldest  int64 // first that is kept
	deleted bool
}

// kept is how many events are left.
func (s *stream) kept() uint64 { return uint64(int64(len(s.events)) - s.oldest + 1) }

func (m *model) init() {
	m.streams, m.cursors = map[types.UID]*stream{}, map[string]map[int64]string{}
	m.kept = map[string]map[int64]bool{}
}

// live returns the stream of a task name that is not deleted.
func (m *model) live(ns, task string) *stream {
	for _, s := range m.streams {
		if s.Namespace == ns && s.Task == task && !s.deleted {
			return s
		}
	}
	return nil
}

// add notes events that were acknowledged or found. Events that are already known are compared.
func (m *model) add(s eventlog.Stream, events []*v1alpha1.ExecutionEvent) error {
	st := m.streams[s.UID]
	if st != nil && st.deleted && len(events) > 0 && events[0].Seq == 1 {
		st = nil // purged, so the UID is new again
	}
	for _, e := range events {
		rev, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: revision %q", errBrokeDense, e.ResourceVersion)
		}
		n := &stored{s, e.Seq, rev, e.Type, e.Severity, e.SessionName, e.DedupKey, 0}
		if st != nil && e.Seq <= int64(len(st.events)) {
			if old := st.events[e.Seq-1]; old.rev != rev || old.typ != n.typ || old.key != n.key {
				return fmt.Errorf("%w: %s/%d is %s at %d, was %s at %d", errBrokeDurable, s, e.Seq, n.typ, rev, old.typ, old.rev)
			}
			continue
		}
		if st == nil {
			if old := m.live(s.Namespace, s.Task); old != nil {
				m.remove(old, rev-old.kept())
			}
			st = &stream{Stream: s, oldest: 1}
			m.streams[s.UID] = st
		}
		if err := st.accept(n); err != nil {
			return err
		}
		m.history = append(m.history, happened{rev, n, false})
	}
	return nil
}

// accept checks that n may be the next event of the stream.
func (s *stream) accept(n *stored) error {
	switch {
	case s.deleted:
		return fmt.Errorf("%w: %s/%d after its deletion", errBrokeTerminal, s, n.seq)
	case n.seq != int64(len(s.events))+1:
		return fmt.Errorf("%w: %s has %d after %d", errBrokeDense, s, n.seq, len(s.events))
	}
	for _, old := range s.events {
		switch {
		case event.Terminal(old.typ) && !event.Late(n.typ):
			return fmt.Errorf("%w: %s/%d after %s", errBrokeTerminal, s, n.seq, old.typ)
		case old.rev >= n.rev:
			return fmt.Errorf("%w: %s/%d at %d, after %d", errBrokeDense, s, n.seq, n.rev, old.rev)
		case n.key != "" && old.key == n.key:
			return fmt.Errorf("%w: key %s of %s is %d and %d", errBrokeOnce, n.key, s, old.seq, n.seq)
		}
	}
	s.events = append(s.events, n)
	return nil
}

// remove notes a deletion whose first revision is rev.
func (m *model) remove(s *stream, rev uint64) {
	s.deleted = true
	m.leave(s, int64(len(s.events)), rev)
}

// leave notes that the events up to last were removed, the first of them at rev.
func (m *model) leave(s *stream, last int64, rev uint64) {
	for ; s.oldest <= last; s.oldest++ {
		e := s.events[s.oldest-1]
		e.gone = rev
		m.history = append(m.history, happened{e.gone, e, true})
		rev++
	}
}

// trim notes that the log may have trimmed s, and now has revision rev.
func (m *model) trim(s *stream, before int64, rev uint64) {
	if s == nil || s.deleted {
		return
	}
	last := min(before, int64(len(s.events))) - 1
	for _, e := range s.events {
		if event.Terminal(e.typ) {
			last = min(last, e.seq-1)
		}
	}
	if last >= s.oldest {
		m.leave(s, last, rev-uint64(last-s.oldest))
	}
}

// check reads the whole log and compares it with the model.
func (d *Driver) check() error {
	if d.fatal.Load() != nil {
		return nil // until it is opened again
	}
	for _, s := range d.model.streams {
		if err := d.checkStream(s); err != nil {
			return err
		}
	}
	if err := d.checkSessions(); err != nil {
		return err
	}
	if err := d.tally.check(&d.model); err != nil {
		return err
	}
	for name, r := range d.readers {
		if err := r.check(&d.model); err != nil {
			return fmt.Errorf("reader %s: %w", name, err)
		}
	}
	return nil
}

func (d *Driver) checkStream(s *stream) error {
	ctx := d.t.Context()
	var got []*v1alpha1.ExecutionEvent
	var gaps []eventlog.Gap
	for after := int64(0); ; {
		p, err := d.log.TaskPage(ctx, s.Stream, after, 3, nil)
		switch {
		case s.deleted && (errors.Is(err, eventlog.ErrDeleted) || err == nil && p.Latest == 0):
			return nil
		case s.deleted:
			return fmt.Errorf("%w: %s is deleted but reads: %w", errBrokeDurable, s, err)
		case err != nil:
			return err
		}
		if p.Head.Oldest != s.oldest {
			return fmt.Errorf("%w: %s begins at %d, want %d", errBrokeDurable, s, p.Head.Oldest, s.oldest)
		}
		got, gaps = append(got, p.Events...), append(gaps, p.Gaps...)
		if after = p.Next; len(p.Events) == 0 || after >= p.Latest {
			break
		}
	}
	if uint64(len(got)) != s.kept() {
		return fmt.Errorf("%w: %s has %d events, %d were acknowledged", errBrokeDurable, s, len(got), s.kept())
	}
	if s.oldest > 1 && !slices.Equal(gaps, []eventlog.Gap{{From: 1, To: s.oldest - 1}}) || s.oldest == 1 && gaps != nil {
		return fmt.Errorf("%w: %s begins at %d, gaps %v", errBrokeGap, s, s.oldest, gaps)
	}
	if err := d.checkBackward(len(got), func(before int64) (*eventlog.StreamPage, error) {
		return d.log.TaskSpan(ctx, s.Stream, eventlog.Span{Backward: true, Before: before, Limit: 3})
	}); err != nil {
		return err
	}
	if err := d.checkCounts(s, got); err != nil {
		return err
	}
	return d.model.add(s.Stream, got)
}

// checkCounts compares the counts of a stream, in total and in buckets, with its events.
func (d *Driver) checkCounts(s *stream, got []*v1alpha1.ExecutionEvent) error {
	if len(got) == 0 {
		return nil
	}
	c, err := d.log.Count(d.t.Context(), s.Stream, nil, 7)
	if err != nil {
		return err
	}
	want := map[v1alpha1.EventType]int64{}
	for _, e := range got {
		want[e.Type]++
	}
	sum := int64(0)
	for _, b := range c.Buckets {
		sum += b.Total
	}
	if c.Total != int64(len(got)) || sum != c.Total || !maps.Equal(c.Types, want) || !c.First.Equal(got[0].CreatedAt.Time) || !c.Last.Equal(got[len(got)-1].CreatedAt.Time) {
		return fmt.Errorf("%w: %s has %d events, the counts are %+v", errBrokeDurable, s, len(got), c)
	}
	return nil
}

// checkBackward reads a stream or a timeline from its end to its beginning: want events, and gaps for all others.
func (d *Driver) checkBackward(want int, read func(before int64) (*eventlog.StreamPage, error)) error {
	at := int64(-1) // the position that comes next, going down
	for before := int64(0); ; {
		p, err := read(before)
		if err != nil {
			return err
		}
		if at < 0 {
			at = p.Latest
		}
		gaps := p.Gaps
		skip := func() {
			for len(gaps) > 0 && gaps[0].To == at {
				at, gaps = gaps[0].From-1, gaps[1:]
			}
		}
		for _, e := range p.Events {
			if skip(); e.Seq != at {
				return fmt.Errorf("%w: read backward, %d follows %d", errBrokeGap, e.Seq, at+1)
			}
			at, want = at-1, want-1
		}
		if skip(); len(gaps) > 0 {
			return fmt.Errorf("%w: read backward, gaps %v after %d", errBrokeGap, gaps, at+1)
		}
		if p.Prev == 0 {
			break
		}
		before = p.Prev
	}
	if at > 0 || want != 0 {
		return fmt.Errorf("%w: read backward, %d events are missing and %d is the last one", errBrokeDurable, want, at+1)
	}
	return nil
}

// checkSessions reads every timeline. A cursor always refers to the same event.
func (d *Driver) checkSessions() error {
	ever, want := map[[2]string]int64{}, map[[2]string]int{}
	for _, h := range d.model.history {
		if h.event.session == "" || h.deleted {
			continue
		}
		k := [2]string{h.event.stream.Namespace, h.event.session}
		ever[k]++
		if h.event.gone == 0 {
			want[k]++
		}
	}
	for k, n := range ever {
		if err := d.checkSession(k, n, want[k]); err != nil {
			return err
		}
	}
	return nil
}

// checkSession checks a session that had ever events in total and now has want.
func (d *Driver) checkSession(k [2]string, ever int64, want int) error {
	known := d.model.cursors[k[0]+"/"+k[1]]
	if known == nil {
		known = map[int64]string{}
		d.model.cursors[k[0]+"/"+k[1]] = known
	}
	count, last := 0, uint64(0)
	kept := map[int64]bool{}
	d.model.kept[k[0]+"/"+k[1]] = kept
	for after := int64(0); ; {
		p, err := d.log.SessionPage(d.t.Context(), k[0], k[1], after, 4, nil)
		if err != nil {
			return err
		}
		if p.Latest != ever {
			return fmt.Errorf("%w: %s is at cursor %d after %d events", errBrokeSessionOrder, k, p.Latest, ever)
		}
		if err := dense(after, items(p), p.Next); err != nil {
			return fmt.Errorf("session %s: %w", k, err)
		}
		for _, e := range p.Events {
			rev, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
			if err != nil || rev <= last {
				return fmt.Errorf("%w: %s cursor %d at %s after %d", errBrokeSessionOrder, k, e.Seq, e.ResourceVersion, last)
			}
			last, kept[e.Seq] = rev, true
			if was, ok := known[e.Seq]; ok && was != string(e.UID) {
				return fmt.Errorf("%w: %s cursor %d was another event", errBrokeSessionOrder, k, e.Seq)
			}
			known[e.Seq] = string(e.UID)
			count++
		}
		if after = p.Next; after >= p.Latest {
			break
		}
	}
	if err := d.checkBackward(want, func(before int64) (*eventlog.StreamPage, error) {
		return d.log.SessionSpan(d.t.Context(), k[0], k[1], eventlog.Span{Backward: true, Before: before, Limit: 4})
	}); err != nil {
		return fmt.Errorf("session %s: %w", k, err)
	}
	if count != want {
		return fmt.Errorf("%w: session %s has %d events, want %d", errBrokeDurable, k, count, want)
	}
	return nil
}

// visible reports whether an event belongs to the state at rev.
func (e *stored) visible(rev uint64) bool { return e.rev <= rev && (e.gone == 0 || e.gone > rev) }

// matches reports whether a query selects the event.
func (e *stored) matches(q *eventlog.Query) bool {
	return (q.Namespace == "" || q.Namespace == e.stream.Namespace) &&
		(q.Task == "" || q.Task == e.stream.Task) &&
		(q.Session == "" || q.Session == e.session) &&
		(len(q.Types) == 0 || slices.Contains(q.Types, e.typ)) &&
		(len(q.Severity) == 0 || slices.Contains(q.Severity, e.sev)) &&
		(q.Name == "" || q.Name == event.Name(e.stream.Task, e.seq))
}
