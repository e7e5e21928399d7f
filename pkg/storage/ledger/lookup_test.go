// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// counting counts the rows that are read one after another.
type counting struct {
	engine.Engine

	rows int
}

type countingIter struct {
	engine.Iter

	of *counting
}

func (c *counting) NewIter(lower, upper []byte) (engine.Iter, error) {
	it, err := c.Engine.NewIter(lower, upper)
	return &countingIter{it, c}, err
}

func (i *countingIter) First() bool { i.of.rows++; return i.Iter.First() }

func (i *countingIter) Next() bool { i.of.rows++; return i.Iter.Next() }

// TestOneObservationIsNoScan: reading one observation by its ID reads a row or two, however many the namespace has.
func TestOneObservationIsNoScan(t *testing.T) {
	dir, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	e, c := &counting{Engine: dir}, clocktesting.NewFakeClock(noon)
	l, err := ledger.Open(e, c)
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if _, err := l.Start(t.Context(), usage.Observation{Namespace: "ns", Model: "m"}); err != nil {
			t.Fatal(err)
		}
		c.Step(time.Second)
	}
	other, err := l.Start(t.Context(), usage.Observation{Namespace: "other", Model: "m"})
	if err != nil || other == nil {
		t.Fatal(err)
	}
	c.Step(time.Second)
	var ids []string
	for _, namespace := range []string{"ns", "other"} {
		v, err := l.At(t.Context(), namespace, c.Now())
		if err != nil {
			t.Fatal(err)
		}
		for o, err := range v.Observations(usage.Period{}) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, o.ID)
		}
		v.Close()
	}
	v, err := l.At(t.Context(), "ns", c.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	e.rows = 0
	for at, known := range map[int]bool{0: true, 499: true, 500: false} { // the last one is of another namespace
		if o, err := v.Observation(ids[at]); err != nil || (o != nil) != known || known && o.ID != ids[at] {
			t.Errorf("observation %d: %+v, %v", at, o, err)
		}
	}
	for _, id := range []string{"", "nothing", "00000000000000000000000000000000"} {
		if o, err := v.Observation(id); err != nil || o != nil {
			t.Errorf("%q: %+v, %v", id, o, err)
		}
	}
	if e.rows > 4 {
		t.Errorf("%d rows were read", e.rows)
	}
}
