// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"hash/maphash"
	"sync"

	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// maxPendingCounts is how many tasks are remembered with what was counted of them.
const maxPendingCounts = 4096

var seed = maphash.MakeSeed()

// pendings limits how many approvals of a task wait for a decision.
type pendings struct {
	locks   [64]sync.Mutex // by task; several may share one
	counted *lru.Cache     // pendingCount by UID, changed under the task's lock
}

// pendingCount is what was counted in a stream up to a seq.
type pendingCount struct{ upTo, pending int64 }

func newPendings() *pendings { return &pendings{counted: lru.New(maxPendingCounts)} }

// admit refuses events that would request more approvals than may be pending. No other request of the task is admitted
// until the func that it returns is called, after the events were stored.
func (p *pendings) admit(ctx context.Context, log *eventlog.Log, s eventlog.Stream, events []*v1alpha1.ExecutionEvent) (release func(), err error) {
	asked := map[string]bool{}
	for _, e := range events {
		if e.Type == v1alpha1.EventApprovalRequested {
			asked[e.DedupKey] = true
		}
	}
	if len(asked) == 0 {
		return func() {}, nil
	}
	m := &p.locks[maphash.String(seed, string(s.UID))%uint64(len(p.locks))]
	m.Lock()
	defer func() {
		if err != nil {
			m.Unlock()
		}
	}()
	for key := range asked { // a request that is repeated adds nothing
		has, err := log.Has(ctx, s, key)
		if err != nil {
			return nil, err
		}
		if has {
			delete(asked, key)
		}
	}
	used, err := p.count(ctx, log, s)
	if err != nil {
		return nil, err
	}
	if n := int64(len(asked)); n > 0 && used+n > approval.MaxPending {
		return nil, &quota.LimitError{Limit: "number of pending approvals", Of: quota.OfTask, Used: used, Asked: n, Most: approval.MaxPending}
	}
	return m.Unlock, nil
}

// count returns how many approvals of a stream are pending. It reads only what was appended since it was last called.
func (p *pendings) count(ctx context.Context, log *eventlog.Log, s eventlog.Stream) (int64, error) {
	head, err := log.Head(ctx, s)
	if err != nil {
		return 0, err
	}
	var known pendingCount
	if c, ok := p.counted.Get(s.UID); ok {
		known = c.(pendingCount) //nolint:forcetypeassert // nothing else is kept
	}
	for _, t := range approval.EventTypes() {
		change := approval.PendingChange(t)
		if change == 0 {
			continue
		}
		n, err := log.CountBetween(ctx, s, t, known.upTo, head.LatestSeq)
		if err != nil {
			return 0, err
		}
		known.pending += change * n
	}
	known.upTo = head.LatestSeq
	p.counted.Add(s.UID, known)
	return max(known.pending, 0), nil
}
