// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"encoding/binary"
	"fmt"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Totals are the bytes that each namespace holds, each in its own row of the engine. A change of a total is
// in the batch of the content that causes it, so the two never differ, even after a crash. Content stored
// before it was counted is not included.
//
// Totals is not safe for concurrent use. The caller must order all changes and make their batches visible
// in that order.
type Totals struct {
	engine engine.Engine
	key    func(ns string) []byte
	held   map[string]int64 // of the namespaces used since the start; includes batches in flight
}

// NewTotals returns Totals whose row for a namespace is at key(ns).
func NewTotals(e engine.Engine, key func(ns string) []byte) *Totals {
	return &Totals{engine: e, key: key, held: map[string]int64{}}
}

// Held returns the total of a namespace in bytes. It reads the row only the first time.
func (t *Totals) Held(ns string) (int64, error) {
	if held, ok := t.held[ns]; ok {
		return held, nil
	}
	row, ok, err := t.engine.Get(t.key(ns))
	switch {
	case err != nil:
		return 0, err
	case !ok:
		t.held[ns] = 0
	case len(row) != 8:
		return 0, fmt.Errorf("corrupt record of a quota %q", t.key(ns))
	default:
		t.held[ns] = int64(binary.BigEndian.Uint64(row))
	}
	return t.held[ns], nil
}

// Add adds n, which may be negative, to the total of ns, and writes the row to b. Held must have been
// called for ns before. If Add fails, the batch must not be applied, and the engine must not be used any
// more.
func (t *Totals) Add(b engine.Batch, ns string, n int64) error {
	if n == 0 {
		return nil
	}
	held := max(0, t.held[ns]+n)
	t.held[ns] = held
	if held == 0 {
		return b.Delete(t.key(ns))
	}
	return b.Set(t.key(ns), binary.BigEndian.AppendUint64(nil, uint64(held)))
}
