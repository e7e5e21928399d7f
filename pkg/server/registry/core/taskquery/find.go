// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package taskquery

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// row is a task that was found, with what it is sorted by.
type row struct {
	task   *v1alpha1.Task
	value  int64
	second int64 // of two tasks with the same value
	known  bool  // whether there is a value
	usage  *v1alpha1.TaskUsage
	read   bool // whether usage was read
}

// find walks over the tasks and returns a page.
func (o *Options) find(ctx context.Context, q *query) (*v1alpha1.TaskQueryStatus, error) {
	asOf := q.now
	if q.Continue != "" {
		asOf = time.Unix(q.at.AsOf, 0)
	}
	rows, revision, err := o.rows(ctx, q, asOf)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, q.compare)
	status := &v1alpha1.TaskQueryStatus{Items: []v1alpha1.TaskSummary{}, Matched: int64(len(rows)), AsOf: &metav1.Time{Time: asOf.UTC().Truncate(time.Second)}}
	if q.Continue != "" {
		last := row{task: &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: q.at.Name}}, value: q.at.Value, second: q.at.Second, known: q.at.Known}
		from, _ := slices.BinarySearchFunc(rows, last, func(r, last row) int { return cmp.Or(q.compare(r, last), -1) })
		rows = rows[from:]
	}
	if len(rows) > q.limit {
		rows = rows[:q.limit]
		last := rows[q.limit-1]
		p := place{Revision: revision, AsOf: asOf.Unix(), Value: last.value, Second: last.second, Known: last.known, Name: last.task.Name, Query: q.digest}
		if status.Continue, err = p.token(); err != nil {
			return nil, err
		}
	}
	for i := range rows {
		status.Items = append(status.Items, o.summary(ctx, &rows[i], asOf, revision))
	}
	return status, nil
}

// rows returns the tasks that are selected, in no order, and the state of the store that they are from.
func (o *Options) rows(ctx context.Context, q *query, asOf time.Time) ([]row, uint64, error) {
	sees := o.Sees(ctx)
	var found []*v1alpha1.Task
	revision, err := o.Tasks.Each(ctx, q.at.Revision, func(t *v1alpha1.Task) error {
		s := o.Summary(t)
		if !q.selects(t, &s) {
			return nil
		}
		seen, err := sees(t)
		if seen {
			found = append(found, t)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	// What a running task has used is read from its events, and not during the walk, which holds a state of the store.
	rows := make([]row, 0, len(found))
	for _, t := range found {
		r := row{task: t}
		if q.minDuration > 0 {
			if d, ok := lasted(t, asOf); !ok || d < q.minDuration {
				continue
			}
		}
		if q.MinTokens > 0 {
			if n, ok := total(o.usage(ctx, &r, revision)); !ok || n < q.MinTokens {
				continue
			}
		}
		r.value, r.known = o.value(ctx, q, &r, asOf, revision)
		if q.OrderBy == v1alpha1.TasksByCreated || q.OrderBy == v1alpha1.TasksByStarted && r.known {
			r.second = t.Status.CreationRevision // times are in whole seconds
		}
		rows = append(rows, r)
	}
	return rows, revision, nil
}

// compare orders rows: by value, those without one last, and then by name.
func (q *query) compare(a, b row) int {
	by, names := 0, strings.Compare(a.task.Name, b.task.Name)
	switch {
	case a.known != b.known && a.known:
		return -1
	case a.known != b.known:
		return 1
	case q.OrderBy == v1alpha1.TasksByName:
		by = names
	default:
		by = cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.second, b.second))
	}
	if q.Descending {
		by = -by
	}
	return cmp.Or(by, names)
}

// usage returns what a task has used. A running task's is read from its events, so once.
func (o *Options) usage(ctx context.Context, r *row, revision uint64) *v1alpha1.TaskUsage {
	if !r.read {
		r.usage, r.read = o.Tasks.Usage(ctx, r.task, revision), true
	}
	return r.usage
}

// value returns what a task is sorted by.
func (o *Options) value(ctx context.Context, q *query, r *row, asOf time.Time, revision uint64) (int64, bool) {
	t := r.task
	switch q.OrderBy {
	case v1alpha1.TasksByStarted:
		if t.Status.StartTime == nil {
			return 0, false
		}
		return t.Status.StartTime.Unix(), true
	case v1alpha1.TasksByDuration:
		return lasted(t, asOf)
	case v1alpha1.TasksByTokens:
		return total(o.usage(ctx, r, revision))
	case v1alpha1.TasksByName:
		return 0, true
	default:
		return t.CreationTimestamp.Unix(), true
	}
}

// lasted returns how many seconds a task took, or has run.
func lasted(t *v1alpha1.Task, asOf time.Time) (int64, bool) {
	d, known := v1alpha1.Lasted(t.Status.StartTime, t.Status.CompletionTime, t.Status.Phase, asOf)
	return int64(d / time.Second), known
}

// total returns the known tokens.
func total(u *v1alpha1.TaskUsage) (n int64, known bool) {
	if u == nil || u.InputTokens == nil && u.OutputTokens == nil {
		return 0, false
	}
	for _, part := range []*int64{u.InputTokens, u.OutputTokens} {
		if part != nil {
			n += *part
		}
	}
	return n, true
}

// summary completes what a list shows of a task.
func (o *Options) summary(ctx context.Context, r *row, asOf time.Time, revision uint64) v1alpha1.TaskSummary {
	s := o.Summary(r.task)
	if d, ok := lasted(r.task, asOf); ok {
		s.DurationSeconds = &d
	}
	u := o.usage(ctx, r, revision)
	if n, ok := total(u); ok {
		s.TotalTokens = &n
	}
	if u != nil {
		s.InputTokens, s.OutputTokens, s.UnreportedRequests = u.InputTokens, u.OutputTokens, u.UnreportedRequests
	}
	return s
}
