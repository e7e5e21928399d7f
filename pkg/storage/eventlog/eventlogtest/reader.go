// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// reader moves the events of a watch or a tail into a buffer, unless it is slow.
type reader struct {
	query   eventlog.Query
	from    uint64 // revision it resumed from
	initial bool   // it was sent the state at from first
	tail    bool
	stream  types.UID // of a tail of a task
	after   int64     // where a tail began
	close   func()

	mu      sync.Mutex
	wake    chan struct{} // closed and renewed when any of the below changes
	slow    bool
	reading bool // past the gate
	got     []received
	read    int // by recv
	ended   bool
	ending  sync.WaitGroup
}

// received is one item of a reader.
type received struct {
	kind  watch.EventType
	event *v1alpha1.ExecutionEvent // nil for an error or a gap
	gap   eventlog.Gap
	err   string
}

// gapKind is the kind of a gap of a tail.
const gapKind watch.EventType = "GAP"

func (r *reader) notify() { close(r.wake); r.wake = make(chan struct{}) }

// gate waits while the reader is slow.
func (r *reader) gate(ctx context.Context) {
	for {
		r.mu.Lock()
		slow, wake := r.slow, r.wake
		if !slow {
			r.reading = true
			r.notify()
		}
		r.mu.Unlock()
		if !slow {
			return
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

func (r *reader) note(items ...received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, items...)
	r.reading = false
	r.notify()
}

func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.notify()
}

// setSlow makes a reader stop or continue. A reader that has already passed the gate still reads once.
func (r *reader) setSlow(slow bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for slow && !r.slow && !r.reading && !r.ended {
		wake := r.wake
		r.mu.Unlock()
		<-wake
		r.mu.Lock()
	}
	r.slow = slow
	r.notify()
}

// stop ends the reader and waits for its goroutine.
func (r *reader) stop() {
	r.close()
	r.ending.Wait()
}

// pumpWatch reads a watch until it ends.
func (r *reader) pumpWatch(ctx context.Context, w watch.Interface) {
	defer r.ending.Done()
	defer r.end()
	for {
		r.gate(ctx)
		e, ok := <-w.ResultChan()
		if !ok {
			return
		}
		switch o := e.Object.(type) {
		case *v1alpha1.ExecutionEvent:
			r.note(received{kind: e.Type, event: o})
		case *metav1.Status:
			r.note(received{kind: e.Type, err: fmt.Sprintf("%d %s", o.Code, o.Reason)})
		}
	}
}

// pumpTail reads a tail until it ends.
func (r *reader) pumpTail(ctx context.Context, t *eventlog.Tail) {
	defer r.ending.Done()
	defer r.end()
	defer t.Close()
	for {
		r.gate(ctx)
		p, err := t.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.note(received{kind: watch.Error, err: err.Error()})
			}
			return
		}
		r.note(items(p)...)
		if p.Head.Closed && p.Next >= p.Head.LatestSeq {
			r.note(received{kind: watch.Bookmark, err: "complete " + string(p.Head.Terminal)})
			return
		}
	}
}

var errTimeout = errors.New("nothing came")

// recv waits for the next n items and returns them; with 0 it returns all until the end. It reports the end
// only if it had to wait for it, because whether the end follows right after the nth item depends on
// timing.
func (r *reader) recv(n int) (_ []received, ended bool, err error) {
	timeout := clock.RealClock{}.NewTimer(wait)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		if have := len(r.got) - r.read; have >= n && n > 0 || r.ended {
			take := r.got[r.read:]
			if n > 0 {
				take = take[:min(n, len(take))]
			}
			r.read += len(take)
			r.mu.Unlock()
			return take, n == 0 || len(take) < n, nil
		}
		wake := r.wake
		r.mu.Unlock()
		select {
		case <-wake:
		case <-timeout.C():
			return nil, false, errTimeout
		}
	}
}

// check compares the received events with the history. None may be missing, duplicated, out of order or
// unacknowledged.
func (r *reader) check(m *model) error {
	r.mu.Lock()
	got := slices.Clone(r.got)
	r.mu.Unlock()
	if r.tail {
		return r.checkTail(m, got)
	}
	want := r.expected(m)
	i := 0
	for _, g := range got {
		if g.event == nil || g.kind == watch.Bookmark {
			if err := r.checkBookmark(g, want, i); err != nil {
				return err
			}
			continue
		}
		if i == len(want) {
			return fmt.Errorf("%w: %s %s was not acknowledged", errBrokeDurable, g.kind, g.event.Name)
		}
		w := want[i]
		i++
		kind := watch.Added
		if w.deleted {
			kind = watch.Deleted
		}
		if g.kind != kind || g.event.ResourceVersion != strconv.FormatUint(w.rev, 10) ||
			g.event.TaskName != w.event.stream.Task || g.event.Seq != w.event.seq || g.event.Type != w.event.typ {
			return fmt.Errorf("%w: got %s %s@%s, want %s %s/%d@%d", errBrokeResumable, g.kind, g.event.Name, g.event.ResourceVersion,
				kind, w.event.stream, w.event.seq, w.rev)
		}
	}
	return nil
}

// checkTail checks that a tail of all types returns every event.
func (r *reader) checkTail(m *model, got []received) error {
	if len(r.query.Types) > 0 {
		return nil // its output is compared by the script
	}
	if err := dense(r.after, got, 0); err != nil {
		return err
	}
	kept := m.kept[r.query.Namespace+"/"+r.query.Session]
	s := m.streams[r.stream]
	for _, g := range got {
		switch {
		case s != nil && g.event != nil && g.event.Type != s.events[g.event.Seq-1].typ:
			return fmt.Errorf("%w: %s is not %s", errBrokeDurable, g.event.Name, s.events[g.event.Seq-1].typ)
		case s != nil && g.kind == gapKind && g.gap.To >= s.oldest:
			return fmt.Errorf("%w: %v, but %s begins at %d", errBrokeGap, g.gap, s, s.oldest)
		}
		for at := g.gap.From; s == nil && g.kind == gapKind && at <= g.gap.To; at++ {
			if kept[at] {
				return fmt.Errorf("%w: %v, but cursor %d is kept", errBrokeGap, g.gap, at)
			}
		}
	}
	return nil
}

// items returns the events and gaps of a page, in order.
func items(p *eventlog.StreamPage) []received {
	list := make([]received, 0, len(p.Events)+len(p.Gaps))
	gaps := p.Gaps
	for _, e := range p.Events {
		for ; len(gaps) > 0 && gaps[0].From < e.Seq; gaps = gaps[1:] {
			list = append(list, received{kind: gapKind, gap: gaps[0]})
		}
		list = append(list, received{kind: watch.Added, event: e})
	}
	for _, g := range gaps {
		list = append(list, received{kind: gapKind, gap: g})
	}
	return list
}

// dense checks that events and gaps follow one another without a hole after after, and up to end unless end
// is 0.
func dense(after int64, list []received, end int64) error {
	for _, g := range list {
		var from, to int64
		switch {
		case g.kind == gapKind:
			from, to = g.gap.From, g.gap.To
		case g.event != nil:
			from, to = g.event.Seq, g.event.Seq
		default:
			continue
		}
		if from != after+1 || to < from {
			return fmt.Errorf("%w: %d to %d after %d", errBrokeGap, from, to, after)
		}
		after = to
	}
	if end != 0 && after != end {
		return fmt.Errorf("%w: the page goes to %d, its items to %d", errBrokeGap, end, after)
	}
	return nil
}

// checkBookmark checks that everything up to a bookmark's revision was received before it.
func (r *reader) checkBookmark(g received, want []happened, i int) error {
	if g.event == nil {
		return nil
	}
	rev, err := strconv.ParseUint(g.event.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	if i < len(want) && want[i].rev <= rev {
		return fmt.Errorf("%w: bookmark at %d before the change at %d", errBrokeResumable, rev, want[i].rev)
	}
	return nil
}

// expected is everything that the reader may have received so far.
func (r *reader) expected(m *model) []happened {
	var state, changes []happened
	for _, h := range m.history {
		if !h.event.matches(&r.query) {
			continue
		}
		if h.rev > r.from {
			changes = append(changes, h)
		} else if r.initial && !h.deleted && h.event.visible(r.from) {
			state = append(state, h)
		}
	}
	byRevision := func(a, b happened) int { return int(int64(a.rev) - int64(b.rev)) }
	slices.SortFunc(changes, byRevision)
	slices.SortFunc(state, func(a, b happened) int {
		if r.query.Namespace == "" && a.event.stream.Namespace != b.event.stream.Namespace {
			if a.event.stream.Namespace < b.event.stream.Namespace {
				return -1
			}
			return 1
		}
		return byRevision(a, b)
	})
	return append(state, changes...)
}

// changes returns how many changes were received, not counting bookmarks and errors.
func (r *reader) changes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, g := range r.got {
		if g.event != nil && g.kind != watch.Bookmark {
			n++
		}
	}
	return n
}

func (r *reader) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// recvChanges waits until n changes were received in total, or the reader ended.
func (r *reader) recvChanges(n int) (got int, ended bool, err error) {
	for {
		if got, ended = r.changes(), r.hasEnded(); got >= n || ended {
			return got, ended, nil
		}
		if _, _, err := r.recv(1); err != nil {
			return got, false, err
		}
	}
}
