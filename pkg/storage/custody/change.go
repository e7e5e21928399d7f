// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// change is one write of a row. It is decided on the commit leader.
type change struct {
	s   *Store
	uid types.UID
	// decide returns the row that follows the row now, where nil means none. If they are equal, nothing is written. If decide is nil,
	// next is written in any case, and the row now need not be readable.
	decide func(now []byte) ([]byte, error)

	next    []byte
	changes bool // set by Check: next is to be written
}

var _ engine.Part = (*change)(nil)

// Check decides what to write.
func (c *change) Check() error {
	if c.decide == nil {
		c.changes = true
		return nil
	}
	now, err := c.s.sequenced(c.uid)
	if err != nil {
		return fmt.Errorf("tokens of connection %s: %w", c.uid, err)
	}
	if c.next, err = c.decide(now); err != nil {
		return err
	}
	c.changes = (c.next == nil) != (now == nil) || !bytes.Equal(c.next, now)
	return nil
}

// Write writes the row and shows it to the changes after this one.
func (c *change) Write(b engine.Batch) error {
	if !c.changes {
		return nil
	}
	c.s.mu.Lock()
	c.s.staged[c.uid] = c
	c.s.mu.Unlock()
	if c.next == nil {
		return b.Delete(space.Key(c.uid))
	}
	return b.Set(space.Key(c.uid), c.next)
}

// Abandon has nothing to undo, because Check changes only c.
func (*change) Abandon() {}

// Publish ends the time in which the row is not durable, unless another change of it follows.
func (c *change) Publish() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.staged[c.uid] == c {
		delete(c.s.staged, c.uid)
	}
}

// commit makes changes of different connections durable.
func (s *Store) commit(need engine.Need, changes ...*change) error {
	parts := make([]engine.Part, 0, len(changes))
	for _, c := range changes {
		parts = append(parts, c)
	}
	return s.engine.Commit(engine.Join(need, parts...))
}

// sequenced returns the row of a connection as the changes before the present one leave it, nil if there is none. It is for the commit
// leader: the engine does not show what the same group wrote before.
func (s *Store) sequenced(uid types.UID) ([]byte, error) {
	s.mu.Lock()
	c := s.staged[uid]
	s.mu.Unlock()
	if c != nil {
		return c.next, nil
	}
	return s.get(uid)
}

// durable returns the row of a connection, nil if there is none, once it is durable.
func (s *Store) durable(uid types.UID) ([]byte, error) {
	b, err := s.get(uid)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.staged[uid] // set before the engine shows a row, and removed when the row is durable
	s.mu.Unlock()
	if c != nil {
		err = s.engine.Commit(engine.Join(engine.Nothing))
	}
	return b, err
}

// get returns the row that the engine shows, nil if there is none.
func (s *Store) get(uid types.UID) ([]byte, error) {
	b, ok, err := s.engine.Get(space.Key(uid))
	if err != nil || !ok {
		return nil, err
	}
	return b, nil
}
