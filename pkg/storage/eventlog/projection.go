// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"iter"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Projection keeps rows that follow from the log, such as totals, in the commits
// that change the log. Rows and events become durable together, so they never
// differ, also after a crash.
//
// Its methods run on the commit leader: one change at a time, in the order of the
// commits, and no other commit can begin meanwhile, so they must be quick. A
// projection reads its rows from the store once, when it first needs them, and goes
// on from what it has in memory, because the store does not show the changes of the
// group that is being written. Its keys begin with a keyspace of its own, which
// FORMAT.md of package engine lists. Rows can be read before they are durable.
type Projection interface {
	// Admit is asked about a change before anything of it is written. It reads what
	// Project will need. Its error refuses the change, and is what the caller of the
	// log gets. It must not count the change: it may still be refused.
	Admit(c *Change) error
	// Project adds the rows of a change that all admitted to the change's batch. It
	// must not refuse: an error stops the store.
	Project(b engine.Batch, c *Change) error
}

// Change is what one commit does to a stream: it appends events, or removes the
// stream or its oldest events. It is valid until the method that gets it returns.
type Change struct {
	// Stream is the stream. The session is that of the append, and empty in a removal.
	Stream Stream
	// At is when: the time that the events get as createdAt.
	At time.Time
	// Bytes is by how much what the stream holds grows, or with a removal shrinks.
	Bytes int64
	// Limited is how many of the bytes limits hold for.
	Limited int64

	events []pending
}

// Appended is an event that a commit appends.
type Appended struct {
	// Event is the event as sanitized. It lacks what a commit assigns; it is shared and must not be changed.
	Event *v1alpha1.ExecutionEvent
	// Seq is its place in the stream.
	Seq int64
}

// Appended are the events that are appended, in order, without those that were
// stored before under the same de-duplication key. A removal has none.
func (c *Change) Appended() iter.Seq[Appended] {
	return func(yield func(Appended) bool) {
		for i := range c.events {
			if p := &c.events[i]; p.fresh && !yield(Appended{p.event, p.seq}) {
				return
			}
		}
	}
}

// projections are asked in their order.
type projections []Projection

// admit asks all about a change.
func (list projections) admit(c *Change) error {
	for _, p := range list {
		if err := p.Admit(c); err != nil {
			return err
		}
	}
	return nil
}

// project adds the rows of all for a change.
func (list projections) project(b engine.Batch, c *Change) error {
	var err error
	for _, p := range list {
		err = errors.Join(err, p.Project(b, c))
	}
	return err
}
