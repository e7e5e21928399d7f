// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// countAhead is how many requests after a page are looked at, to find out whether the page is the last one and how many
// approvals remain.
const countAhead = 100

// page adds up to limit selected approvals to the list, in the order in which they were requested. It reads the requests
// from the position on, and of each that may be selected only the events of that approval. So its cost is that of the page,
// and one read for each request that the selection leaves out. It returns the revision of the state, and how many approvals remain: at least, if more is set.
func (v *view) page(ctx context.Context, q eventlog.Query, s *selection, limit int64, list *v1alpha1.ApprovalList) (last token, remain int64, more bool, err error) {
	q.Types, q.Limit = []v1alpha1.EventType{v1alpha1.EventApprovalRequested}, int(min(limit, chunk-countAhead)+countAhead)
	ahead, read := 0, v.requests(s)
	for {
		requests, err := read(ctx, q)
		if err != nil {
			return last, 0, false, err
		}
		last.Revision = requests.Revision
		for _, e := range requests.Items {
			full := int64(len(list.Items)) >= limit
			if full && ahead == countAhead {
				return last, remain, true, nil
			}
			if full {
				ahead++
			}
			a, err := v.one(ctx, e, requests.Revision, s.mayTake)
			if err != nil {
				return last, 0, false, err
			}
			switch {
			case !s.takes(a):
			case full && !s.all(): // what remains of a selection is not counted
				return last, 1, true, nil
			case full:
				remain++
			default:
				v.remember(a)
				list.Items = append(list.Items, *a)
				last.Namespace, last.Asked = e.Namespace, number(e.ResourceVersion)
			}
		}
		if requests.Continue == "" {
			return last, remain, false, nil
		}
		q.Continue, q.Revision, q.NotOlderThan = requests.Continue, requests.Revision, false
	}
}

// one returns the approval that an event requested, in the state at a revision; nil if the event requests none, or one that
// cannot be selected, whose state is not read.
func (v *view) one(ctx context.Context, e *v1alpha1.ExecutionEvent, rev uint64, may func(*v1alpha1.Approval) bool) (*v1alpha1.Approval, error) {
	state := &approval.State{}
	_, a := state.Apply(e)
	if a == nil || !may(a) {
		return nil, nil
	}
	at := eventlog.Stream{Namespace: e.Namespace, Task: e.TaskName, UID: owner(e)}
	known, whole, err := v.log.ByKeys(ctx, at, rev, approval.DecisionKey(a.Name))
	if err != nil {
		return nil, err
	}
	if whole && known[0] != nil && known[0].Type == v1alpha1.EventApprovalApproved {
		outcomes, still, err := v.log.ByKeys(ctx, at, rev, approval.OutcomeKeys(a.Name)...)
		if err != nil {
			return nil, err
		}
		known, whole = append(known, outcomes...), still
	}
	if !whole { // deleted or trimmed since then: the events that the state has are found by their types
		all, _, err := v.fold(ctx, eventlog.Query{Namespace: e.Namespace, Task: e.TaskName, Revision: rev})
		if err != nil {
			return nil, err
		}
		return all.Get(e.Namespace, a.Name), nil
	}
	// What came before the request decided nothing.
	known = slices.DeleteFunc(known, func(k *v1alpha1.ExecutionEvent) bool { return k == nil || k.Seq < e.Seq })
	slices.SortFunc(known, func(a, b *v1alpha1.ExecutionEvent) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range known {
		state.Apply(e)
	}
	return state.Get(e.Namespace, a.Name), nil
}

// owner returns the UID of the task whose stream has the event.
func owner(e *v1alpha1.ExecutionEvent) types.UID {
	for i := range e.OwnerReferences {
		if e.OwnerReferences[i].Kind == "Task" {
			return e.OwnerReferences[i].UID
		}
	}
	return ""
}

// number parses a resourceVersion that the log made.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
