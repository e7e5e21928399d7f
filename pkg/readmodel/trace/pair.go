// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// window bounds how many rows of a group may wait for an older open one, and how many parts of a path are
// kept. Beyond it, finished rows are emitted before open ones. Of open rows at most half as many are kept,
// and the oldest then count as lost.
const window = 1024

// pairs joins starts and ends of one group, and emits their rows in the order of the starts.
type pairs[R any] struct {
	prefix string // of generated ids
	span   func(*R) *v1alpha1.TraceSpan
	emit   func(*R)
	lost   func(*v1alpha1.TraceSpan, *run) // called for a start whose end never came
	rows   []*pair[R]                      // not emitted yet, by start
}

type pair[R any] struct {
	row   *R
	named bool // has its own id
	open  bool
	run   *run // its part of the path, nil if it has none
	mark  mark // of its start
}

// begin adds an open row.
func (p *pairs[R]) begin(row *R, e *v1alpha1.ExecutionEvent, id string) *pair[R] {
	a := &pair[R]{row: row, named: id != "", open: true, mark: markOf(e)}
	s := p.span(row)
	s.ID, s.Status, s.StartSeq, s.StartedAt, s.Summary = id, v1alpha1.SpanRunning, e.Seq, e.CreatedAt, e.Summary
	if id == "" {
		s.ID = p.prefix + strconv.FormatInt(e.Seq, 10)
	}
	p.add(a)
	return a
}

// add adds a row and keeps the rows within the window.
func (p *pairs[R]) add(a *pair[R]) {
	p.rows = append(p.rows, a)
	if len(p.rows) > window {
		p.shrink()
	}
}

// find returns the newest open row with an id. If the id is empty, it returns the newest open row without
// an id for which alike is true. It returns nil if there is none.
func (p *pairs[R]) find(id string, alike func(*R) bool) *pair[R] {
	for _, a := range slices.Backward(p.rows) {
		if !a.open || a.named != (id != "") {
			continue
		}
		if id != "" && p.span(a.row).ID == id || id == "" && alike(a.row) {
			return a
		}
	}
	return nil
}

// finish ends a row with the event of its end.
func (p *pairs[R]) finish(a *pair[R], e *v1alpha1.ExecutionEvent, c content) {
	s := p.span(a.row)
	a.open = false
	took := a.mark.until(e)
	at := metav1.NewMicroTime(s.StartedAt.Add(took))
	s.Status, s.EndSeq, s.EndedAt = v1alpha1.SpanCompleted, e.Seq, &at
	s.DurationMs = c.number("durationMs", "durationMS", "duration_ms")
	if s.DurationMs == nil {
		s.DurationMs = new(max(0, took.Milliseconds()))
	}
	if e.Summary != "" {
		s.Summary = e.Summary
	}
	if failed(e.Type) {
		s.Status, s.Error = v1alpha1.SpanFailed, e.Summary
		if s.Error == "" {
			s.Error = c.text("error", "message", "errorType", "errorClass")
		}
	}
	p.advance()
}

// advance emits the rows that wait for nothing.
func (p *pairs[R]) advance() {
	n := 0
	for n < len(p.rows) && !p.rows[n].open {
		p.emit(p.rows[n].row)
		n++
	}
	p.drop(n)
}

// drop removes the first n rows and releases them to the garbage collector.
func (p *pairs[R]) drop(n int) {
	if n == 0 {
		return
	}
	rest := copy(p.rows, p.rows[n:])
	clear(p.rows[rest:])
	p.rows = p.rows[:rest]
}

// shrink emits the finished rows and gives up the oldest open ones.
func (p *pairs[R]) shrink() {
	open := 0
	for _, a := range p.rows {
		if a.open {
			p.rows[open] = a
			open++
			continue
		}
		p.emit(a.row)
	}
	clear(p.rows[open:])
	p.rows = p.rows[:open]
	if n := open - window/2; n > 0 {
		for _, a := range p.rows[:n] {
			p.giveUp(a, "too many younger ones began before its end")
		}
		p.drop(n)
	}
}

func (p *pairs[R]) giveUp(a *pair[R], why string) {
	s := p.span(a.row)
	s.Error = why
	p.lost(s, a.run)
	p.emit(a.row)
}

// settle emits all rows. Open rows count as having lost their end.
func (p *pairs[R]) settle(why string) {
	for _, a := range p.rows {
		if a.open {
			p.giveUp(a, why)
			continue
		}
		p.emit(a.row)
	}
	p.drop(len(p.rows))
}

// flush emits all rows as they are.
func (p *pairs[R]) flush() {
	for _, a := range p.rows {
		p.emit(a.row)
	}
	p.drop(len(p.rows))
}
