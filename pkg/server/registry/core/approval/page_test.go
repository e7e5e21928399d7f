// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/kit"
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
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: localtest.NewDisk().FS()})
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
	v := &view{log: log, clock: clock.RealClock{}, places: lru.New(maxPlaces), waiting: newWaiting()}
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
	selected := fields.Everything()
	page := func(from string) (cost int64, next string) {
		reads.Store(0)
		got, err := v.list(ctx, &internalversion.ListOptions{Limit: 10, Continue: from, FieldSelector: selected})
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
	selected = fields.OneTermEqualSelector(fieldTask, "t49") // the last one
	if one, _ := page(""); one > few+50 {
		t.Errorf("a page of the approvals of one task reads %d entries, and %d of 200 approvals", one, few)
	}
	var decided []*v1alpha1.ExecutionEvent
	for n := range 4990 {
		digest, err := approval.Digest(fmt.Append(nil, n))
		if err != nil {
			t.Fatal(err)
		}
		decided = append(decided, approval.DecisionEvent(v1alpha1.EventApprovalDeclined, approval.ID("ns", "one", "one", "exec", digest, ""), approval.Decision{Actor: "bob", TaskUID: "one"}))
	}
	if _, err := log.Append(t.Context(), eventlog.Stream{Namespace: "ns", Task: "one", UID: "one"}, decided); err != nil {
		t.Fatal(err)
	}
	selected = fields.OneTermEqualSelector(fieldState, string(v1alpha1.ApprovalPending))
	_, next = page("") // which looks at what has happened
	again, _ := page("")
	if more, _ := page(next); max(again, more) > few+50 {
		t.Errorf("a page of pending approvals after 4,990 that were decided reads %d and %d entries, and %d of 200 approvals", again, more, few)
	}
	// Of a selection that no index has, each request is read, but not the state of those that it leaves out.
	selected = fields.ParseSelectorOrDie(fieldTaskUID + "=t49")
	if all, _ := page(""); all > 3*10_000 {
		t.Errorf("a page of a selection without an index reads %d entries of 10,000 approvals", all)
	}
}

// TestPendingPages: pages of pending approvals show the state in which the list began, whatever is asked and decided meanwhile, and
// the same as a list without pages.
func TestPendingPages(t *testing.T) {
	v := newView(t)
	ctx := request.WithNamespace(t.Context(), "ns")
	r := rand.New(rand.NewPCG(7, 8))
	tasks := []string{"a", "b", "c"}
	asked := map[string]int{}
	change := func(times int) {
		for range times {
			task := tasks[r.IntN(len(tasks))]
			var e *v1alpha1.ExecutionEvent
			digest := func(n int) string {
				d, err := approval.Digest(fmt.Append(nil, n))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if n := asked[task]; n == 0 || r.IntN(2) == 0 {
				e = approval.RequestEvent("ns", v1alpha1.ApprovalSpec{TaskName: task, TaskUID: types.UID(task), TargetTool: "exec", TargetArgsDigest: digest(n)})
				asked[task]++
			} else {
				id := approval.ID("ns", task, types.UID(task), "exec", digest(r.IntN(n)), "")
				e = approval.DecisionEvent([]v1alpha1.EventType{v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined, v1alpha1.EventApprovalExpired}[r.IntN(3)], id, approval.Decision{TaskUID: types.UID(task)})
			}
			if _, err := v.log.Append(t.Context(), eventlog.Stream{Namespace: "ns", Task: task, UID: types.UID(task)}, []*v1alpha1.ExecutionEvent{e}); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(o internalversion.ListOptions) *v1alpha1.ApprovalList {
		o.FieldSelector = fields.OneTermEqualSelector(fieldState, string(v1alpha1.ApprovalPending))
		got, err := v.list(ctx, &o)
		if err != nil {
			t.Fatal(err)
		}
		return got.(*v1alpha1.ApprovalList)
	}
	rounds := 8
	if kit.Offered(kit.Minutes) {
		rounds = 40
	}
	for round := range rounds {
		change(60)
		var want, got []string
		for _, a := range list(internalversion.ListOptions{}).Items {
			want = append(want, a.Name)
		}
		for from, pages := "", 0; ; pages++ {
			page := list(internalversion.ListOptions{Limit: 7, Continue: from})
			for _, a := range page.Items {
				got = append(got, a.Name)
			}
			if from = page.Continue; from == "" {
				break
			}
			if pages < 20 { // else what is listed grows by a part of itself in each round
				change(5)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d approvals in pages, %d in one list:\n%v\n%v", round, len(got), len(want), got, want)
		}
	}
}
