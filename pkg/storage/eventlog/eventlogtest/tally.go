// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

var errBrokeProjected = errors.New("broke Projected: the rows of a projection are those of the events that are stored, also after a crash")

// tally is a projection that counts how many events were ever appended in a namespace.
type tally struct {
	engine engine.Engine
	counts map[string]uint64
}

var _ eventlog.Projection = (*tally)(nil)

// tallyKey is in a keyspace that no store uses.
func tallyKey(ns string) []byte { return []byte("z" + ns) }

func (t *tally) stored(ns string) (uint64, error) {
	row, ok, err := t.engine.Get(tallyKey(ns))
	if err != nil || !ok {
		return 0, err
	}
	return binary.BigEndian.Uint64(row), nil
}

// Admit reads the count of a namespace the first time.
func (t *tally) Admit(c *eventlog.Change) (err error) {
	if _, ok := t.counts[c.Stream.Namespace]; !ok {
		t.counts[c.Stream.Namespace], err = t.stored(c.Stream.Namespace)
	}
	return err
}

// Project counts appended events, and checks that it receives them in order.
func (t *tally) Project(b engine.Batch, c *eventlog.Change) error {
	last := int64(0)
	for a := range c.Appended() {
		if last != 0 && a.Seq != last+1 || a.Event.Type == "" {
			return fmt.Errorf("%w: %d after %d", errBrokeDense, a.Seq, last)
		}
		last = a.Seq
		t.counts[c.Stream.Namespace]++
	}
	if last == 0 { // a removal
		return nil
	}
	return b.Set(tallyKey(c.Stream.Namespace), binary.BigEndian.AppendUint64(nil, t.counts[c.Stream.Namespace]))
}

// check compares the rows with the model.
func (t *tally) check(m *model) error {
	want := map[string]uint64{}
	for _, h := range m.history {
		if !h.deleted {
			want[h.event.stream.Namespace]++
		}
	}
	for ns, n := range want {
		if got, err := t.stored(ns); err != nil || got != n {
			return fmt.Errorf("%w: namespace %s has the row %d for %d events (%w)", errBrokeProjected, ns, got, n, err)
		}
	}
	return nil
}
