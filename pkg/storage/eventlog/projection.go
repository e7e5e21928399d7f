// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Projection keeps rows derived from the log, such as totals, in the commits that change the log. Rows and
// events become durable together, so they never differ, even after a crash.
//
// Its methods run on the commit leader, one change at a time, in the order of the commits. No other commit
// can begin meanwhile, so they must be quick. The store does not show the changes of the group that is
// being written. A projection therefore reads its rows from the store once, when it first needs them, and
// then works from its copy in memory. Its keys begin with their own keyspace, which FORMAT.md of package
// engine lists. Rows can be read before they are durable.
type Projection interface {
	// Admit is called before anything of a change is written. It reads what Project will need. An error
	// refuses the change and is returned to the caller of the log. It must not count the change, which may
	// still be refused.
	Admit(c *Change) error
	// Project adds the rows of a change that all projections admitted to the change's batch. It must not
	// refuse: an error stops the store.
	Project(b engine.Batch, c *Change) error
}

// Change is what one commit does to a stream: it appends events, or removes the stream or its oldest
// events. It is valid only until the method that receives it returns.
type Change struct {
	// Stream is the stream. The session is that of the append, and empty in a removal.
	Stream Stream
	// At is the time of the change: the createdAt of appended events.
	At time.Time
	// Bytes is by how many bytes the stream grows; it is negative in a removal.
	Bytes int64
	// Limited is how many of the bytes are subject to limits.
	Limited int64

	events []pending
	notes  *notes
}

// noteKey is the key of the notes in a context.
type noteKey struct{}

// notes are the notes of an append, the last one first.
type notes struct {
	note   any
	before *notes
}

// WithNote returns a context whose append passes one more note to projections. A note says what a projection needs and the
// events do not. A Projection may also leave an answer in it: the append returns after Project was called, if it was.
func WithNote(ctx context.Context, note any) context.Context {
	before, _ := ctx.Value(noteKey{}).(*notes)
	return context.WithValue(ctx, noteKey{}, &notes{note, before})
}

// NoteOf returns the note of a type that an append was given last; false if it was given none.
func NoteOf[T any](c *Change) (T, bool) {
	for n := c.notes; n != nil; n = n.before {
		if note, ok := n.note.(T); ok {
			return note, true
		}
	}
	var none T
	return none, false
}

// Appended is an event that a commit appends.
type Appended struct {
	// Event is the sanitized event, without the numbers that a commit assigns. It is shared and must not be changed.
	Event *v1alpha1.ExecutionEvent
	// Seq is its place in the stream.
	Seq int64
}

// Appended returns the events that are appended, in order. It leaves out those that were stored before
// under the same de-duplication key. A removal has none.
func (c *Change) Appended() iter.Seq[Appended] {
	return func(yield func(Appended) bool) {
		for i := range c.events {
			if p := &c.events[i]; p.fresh && !yield(Appended{p.event, p.seq}) {
				return
			}
		}
	}
}

// projections are called in the order of the list.
type projections []Projection

// admit calls Admit of each projection.
func (list projections) admit(c *Change) error {
	for _, p := range list {
		if err := p.Admit(c); err != nil {
			return err
		}
	}
	return nil
}

// project adds the rows of all projections for a change.
func (list projections) project(b engine.Batch, c *Change) error {
	var err error
	for _, p := range list {
		err = errors.Join(err, p.Project(b, c))
	}
	return err
}
