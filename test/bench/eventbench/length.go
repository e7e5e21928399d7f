// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventbench

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowPageEnd       = "page of 100 at the end of 1,000,000 events"
	rowApprovals     = "approvals of a task of 1,000,000 events"
	rowApprovalsPeer = "approvals, beside those of 100,000"
	rowSessionFirst  = "session page of 100 of 100,000"
	rowSessionEnd    = "session page near the end of 100,000"
	rowSessionIdle   = "session poll with nothing new"
	rowSessionCold   = "session page of 100,000, first after a start"
	rowDedup         = "append with a key to 100,000 events"
	rowDedupPeer     = "append with a key, beside 100,000"
	rowTrim          = "trim of 100,000 events"
)

// longStream measures pages of a stream of a million events, and of its approvals.
func longStream(ctx context.Context, b *bench) error {
	const length, asked = 1_000_000, 15
	small, large := stream(0, ""), stream(1, "")
	withApprovals := func(n int) func(i int) *v1alpha1.ExecutionEvent {
		return func(i int) *v1alpha1.ExecutionEvent {
			if i%(n/asked) == 0 {
				return &v1alpha1.ExecutionEvent{Type: v1alpha1.EventApprovalRequested, ToolCallID: fmt.Sprint("call-", i)}
			}
			return short(i)
		}
	}
	if err := b.fill(ctx, small, 100, withApprovals(100)); err != nil {
		return err
	}
	if err := b.fill(ctx, large, length, withApprovals(length)); err != nil {
		return err
	}
	first, err := b.micros(b.page(ctx, large, 0))
	if err != nil {
		return err
	}
	last, err := b.micros(b.page(ctx, large, length-100))
	if err != nil {
		return err
	}
	approvals := func(s eventlog.Stream) func() error {
		return func() error {
			p, err := b.log.List(ctx, eventlog.Query{Namespace: s.Namespace, Task: s.Task, Types: []v1alpha1.EventType{
				v1alpha1.EventApprovalRequested, v1alpha1.EventApprovalApproved, v1alpha1.EventApprovalDeclined,
				v1alpha1.EventApprovalExpired, v1alpha1.EventApprovalCancelled, v1alpha1.EventApprovalExecutionUpdated,
			}})
			if err == nil && len(p.Items) < asked {
				err = fmt.Errorf("%d approvals", len(p.Items))
			}
			return err
		}
	}
	few, err := b.micros(approvals(small))
	if err != nil {
		return err
	}
	many, err := b.micros(approvals(large))
	if err != nil {
		return err
	}
	if err := b.add(rowPageEnd, "us", report.Lower, last, first, "first page"); err != nil {
		return err
	}
	if err := b.add(rowApprovals, "us", report.Lower, many, few, "of 100 events"); err != nil {
		return err
	}
	return b.add(rowApprovalsPeer, "us", report.Lower, many, 85_000, peer)
}

// longSession measures the timeline of 50 tasks of 2,000 events each.
func longSession(ctx context.Context, b *bench) error {
	const tasks, each, session = 50, 2000, "s"
	for round := range each / 500 {
		for t := range tasks {
			if err := b.fill(ctx, stream(t, session), 500, func(i int) *v1alpha1.ExecutionEvent { return short(round*500 + i) }); err != nil {
				return err
			}
		}
	}
	page := func(after int64, want int) func() error {
		return func() error {
			p, err := b.log.SessionPage(ctx, "default", session, after, 100, nil)
			if err == nil && (len(p.Events) != want || p.Latest != tasks*each) {
				err = fmt.Errorf("a page of %d events of %d", len(p.Events), p.Latest)
			}
			return err
		}
	}
	for _, row := range []struct {
		name  string
		after int64
		want  int
		peer  float64 // microseconds
	}{
		{rowSessionFirst, 0, 100, 78_600},
		{rowSessionEnd, tasks*each - 150, 100, 36_000},
		{rowSessionIdle, tasks * each, 0, 32_300},
	} {
		took, err := b.micros(page(row.after, row.want))
		if err != nil {
			return err
		}
		if err := b.add(row.name, "us", report.Lower, took, row.peer, peer); err != nil {
			return err
		}
	}
	if err := b.close(); err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	took, err := b.once(page(tasks*each/2, 100))
	if err != nil {
		return err
	}
	return b.add(rowSessionCold, "us", report.Lower, took, 1000, aim)
}

// dedup measures an append with a de-duplication key, and the same retried, at
// several lengths of the stream.
func dedup(ctx context.Context, b *bench) error {
	s := stream(0, "")
	key := 0
	one := func() error {
		key++
		e := short(key)
		e.DedupKey = fmt.Sprintf("worker/event/%08d", key)
		for range 2 { // the second finds it
			if _, err := b.log.Append(ctx, s, []*v1alpha1.ExecutionEvent{e}); err != nil {
				return err
			}
		}
		return nil
	}
	at := map[int]float64{}
	filled := 0
	for _, n := range []int{100, 10_000, 100_000} {
		err := b.fill(ctx, s, n-filled, func(i int) *v1alpha1.ExecutionEvent {
			e := short(i)
			e.DedupKey = fmt.Sprintf("controller/event/%08d", filled+i)
			return e
		})
		if err != nil {
			return err
		}
		filled = n
		if at[n], err = b.micros(one); err != nil {
			return err
		}
	}
	if err := b.add(rowDedup, "us", report.Lower, at[100_000], at[100], "of 100 events"); err != nil {
		return err
	}
	return b.add(rowDedupPeer, "us", report.Lower, at[100_000], 79_500, peer)
}

// trim measures the removal of all but the end of a stream.
func trim(ctx context.Context, b *bench) error {
	small, large := stream(0, ""), stream(1, "")
	if err := b.fill(ctx, small, 101, short); err != nil {
		return err
	}
	if err := b.fill(ctx, large, 100_001, short); err != nil {
		return err
	}
	few, err := b.once(func() error { return b.log.Trim(ctx, small, 101) })
	if err != nil {
		return err
	}
	many, err := b.once(func() error { return b.log.Trim(ctx, large, 100_001) })
	if err != nil {
		return err
	}
	return b.add(rowTrim, "us", report.Lower, many, few, "of 100 events")
}
