// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// counted counts what is read of an engine: values, and steps of iterators.
type counted struct {
	engine.Engine
	reads *atomic.Int64
}

func (c counted) Get(key []byte) ([]byte, bool, error) {
	c.reads.Add(1)
	return c.Engine.Get(key)
}

func (c counted) NewIter(lower, upper []byte) (engine.Iter, error) {
	it, err := c.Engine.NewIter(lower, upper)
	return countedIter{it, c.reads}, err
}

type countedIter struct {
	engine.Iter
	reads *atomic.Int64
}

func (i countedIter) First() bool          { i.reads.Add(1); return i.Iter.First() }
func (i countedIter) Next() bool           { i.reads.Add(1); return i.Iter.Next() }
func (i countedIter) SeekGE(k []byte) bool { i.reads.Add(1); return i.Iter.SeekGE(k) }

// TestPageCostsThePage: a list of 10 reads as much of 10,000 pending approvals as of 200, wherever the page is.
func TestPageCostsThePage(t *testing.T) {
	var reads atomic.Int64
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(t.Context(), counted{e, &reads}, eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(log.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	v := &view{log: log, clock: clock.RealClock{}, places: lru.New(maxPlaces)}
	ctx := request.WithNamespace(t.Context(), "ns")
	ask := func(task string, from, to int) {
		var list []*v1alpha1.ExecutionEvent
		for n := from; n < to; n++ {
			digest, err := approval.Digest(fmt.Append(nil, n))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, approval.RequestEvent("ns", v1alpha1.ApprovalSpec{TaskName: task, TaskUID: types.UID(task), TargetTool: "exec", TargetArgsDigest: digest}))
		}
		if _, err := log.Append(t.Context(), eventlog.Stream{Namespace: "ns", Task: task, UID: types.UID(task)}, list); err != nil {
			t.Fatal(err)
		}
	}
	page := func(from string) (cost int64, next string) {
		reads.Store(0)
		got, err := v.list(ctx, &internalversion.ListOptions{Limit: 10, Continue: from})
		if err != nil {
			t.Fatal(err)
		}
		list := got.(*v1alpha1.ApprovalList)
		if len(list.Items) != 10 || list.Continue == "" {
			t.Fatalf("%d items, continue %q", len(list.Items), list.Continue)
		}
		return reads.Load(), list.Continue
	}
	ask("one", 0, 200)
	few, _ := page("")
	ask("one", 200, 5000)
	for i := range 50 {
		ask(fmt.Sprintf("t%d", i), 0, 100)
	}
	many, next := page("")
	for range 20 {
		var again int64
		again, next = page(next)
		many = max(many, again)
	}
	t.Logf("a page of 10 reads %d entries of 200 approvals, and at most %d of 10,000", few, many)
	if many > few+50 {
		t.Errorf("a page of 10 reads %d entries of 200 approvals, and %d of 10,000", few, many)
	}
}
