// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// path finds what the task waited for, step by step, from its first event to its last. It reads backwards:
// of several runs in parallel, the one that ended last was waited for. Before that one began, the run that
// had ended last was waited for, and so on. The time between them is idle. So of parallel calls the longest
// counts, and the parts never overlap.
//
// When nothing runs, the path up to that moment is decided and is emitted.
type path struct {
	emit    func(*v1alpha1.TraceSegment)
	started bool
	closed  bool      // the task is over; later runs are not on its path
	now     time.Time // of the latest event
	covered time.Time // end of the last segment emitted
	running []*run    // by start
	last    *part     // the part that ended last since segments were emitted
	ended   int       // parts since then
}

// run is something that is running, such as a request or a call.
type run struct {
	v1alpha1.TraceSegment
	from   time.Time
	before *part
}

// part is a run that has ended.
type part struct {
	v1alpha1.TraceSegment
	from, to time.Time
	before   *part
}

// reach moves the time forward to that of the next event. It never goes back.
func (p *path) reach(t time.Time) {
	if p.closed {
		return
	}
	if !p.started {
		p.started, p.now, p.covered = true, t, t
	}
	if t.After(p.now) {
		p.now = t
	}
}

// begin starts a run. It is nil when the task is over.
func (p *path) begin(kind, id, name string, seq int64) *run {
	if p.closed {
		return nil
	}
	r := &run{from: p.now, before: p.last}
	r.Kind, r.ID, r.Name, r.StartSeq = kind, id, name, seq
	p.running = append(p.running, r)
	return r
}

// finish ends a run with an event. A nil run is ignored.
func (p *path) finish(r *run, seq int64) {
	if p.remove(r) {
		r.EndSeq = seq
		p.ends(r)
	}
}

// lose ends a run whose end was not seen. Parts that ended after the run began were waited for in any case,
// so the run counts only from the end of the last of them.
func (p *path) lose(r *run) {
	if !p.remove(r) {
		return
	}
	if p.last != nil && p.last != r.before {
		r.from, r.before = p.last.to, p.last
		if !r.from.Before(p.now) {
			p.settle()
			return
		}
	}
	p.ends(r)
}

func (p *path) remove(r *run) bool {
	i := slices.Index(p.running, r)
	if r == nil || i < 0 {
		return false
	}
	p.running = slices.Delete(p.running, i, i+1)
	return true
}

func (p *path) ends(r *run) {
	p.last = &part{TraceSegment: r.TraceSegment, from: r.from, to: p.now, before: r.before}
	p.ended++
	p.settle()
}

// settle emits the segments that are decided, or too many to keep.
func (p *path) settle() {
	if len(p.running) == 0 || p.ended >= window {
		p.flush()
	}
}

// cut ends the running runs, of some kinds or of all, without an end event. One of them was waited for: the
// oldest that began after everything that has ended, or else the oldest.
func (p *path) cut(kinds ...string) {
	var lost []*run
	for _, r := range p.running {
		if len(kinds) == 0 || slices.Contains(kinds, r.Kind) {
			lost = append(lost, r)
		}
	}
	if len(lost) == 0 {
		return
	}
	waited := lost[max(0, slices.IndexFunc(lost, func(r *run) bool { return r.before == p.last }))]
	for _, r := range lost {
		if r != waited {
			p.remove(r)
		}
	}
	p.lose(waited)
}

// flush emits the path up to the part that ended last. Running runs continue from there.
func (p *path) flush() {
	var way []*part
	for x := p.last; x != nil; x = x.before {
		way = append(way, x)
	}
	slices.Reverse(way)
	for _, x := range way {
		if x.to.Before(p.covered) {
			continue
		}
		if x.from.Before(p.covered) {
			x.from = p.covered
		}
		p.idle(x.from)
		x.StartedAt, x.DurationMs = metav1.NewMicroTime(x.from), x.to.Sub(x.from).Milliseconds()
		p.emit(&x.TraceSegment)
		p.covered = x.to
	}
	for _, r := range p.running {
		r.before = nil
	}
	p.last, p.ended = nil, 0
}

// idle emits the time before a run in which nothing ran.
func (p *path) idle(to time.Time) {
	if ms := to.Sub(p.covered).Milliseconds(); ms > 0 {
		p.emit(&v1alpha1.TraceSegment{Kind: v1alpha1.TraceKindIdle, StartedAt: metav1.NewMicroTime(p.covered), DurationMs: ms})
	}
}

// end emits the path up to the latest event.
func (p *path) end() {
	p.cut()
	p.flush()
}

// close ends the path when the task ends.
func (p *path) close() {
	if p.closed {
		return
	}
	p.end()
	p.idle(p.now)
	p.covered, p.closed = p.now, true
}
