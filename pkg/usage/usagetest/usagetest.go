// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usagetest has a ledger in memory for tests: every state of every record, in plain slices.
package usagetest

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/usage"
)

// Ledger is all states of all records, in the order in which they were recorded. Its methods are slow and obvious.
type Ledger struct {
	Tasks        []usage.Task
	Observations []usage.Observation
	Links        []usage.Link
	Since        time.Time
}

// At returns the records of a namespace as of a time.
func (l *Ledger) At(_ context.Context, namespace string, asOf time.Time) (usage.View, error) {
	v := &view{since: l.Since}
	v.tasks = newest(l.Tasks, func(t *usage.Task) (string, bool) {
		return t.UID, t.Namespace == namespace && !t.ObservedAt.After(asOf)
	})
	v.observations = newest(l.Observations, func(o *usage.Observation) (string, bool) {
		return o.ID, o.Namespace == namespace && !o.ObservedAt.After(asOf)
	})
	v.links = newest(l.Links, func(k *usage.Link) (string, bool) {
		return k.ID, k.Namespace == namespace && !k.RecordedAt.After(asOf)
	})
	slices.SortFunc(v.tasks, func(a, b *usage.Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.UID, b.UID))
	})
	slices.SortFunc(v.observations, func(a, b *usage.Observation) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return v, nil
}

// ChangeLink records what decide makes of a link. It is recorded at the time at which it was observed.
func (l *Ledger) ChangeLink(ctx context.Context, namespace, id string, decide func(v usage.View, old *usage.Link) (*usage.Link, error)) error {
	v, err := l.At(ctx, namespace, time.Unix(1<<40, 0))
	if err != nil {
		return err
	}
	old, err := v.Link(id)
	if err != nil {
		return err
	}
	next, err := decide(v, old)
	if err == nil && next != nil {
		k := *next
		k.RecordedAt = k.ObservedAt
		l.Links = append(l.Links, k)
	}
	return err
}

// newest returns the last state of each record that is wanted.
func newest[T any](states []T, wanted func(*T) (string, bool)) []*T {
	var out []*T
	at := map[string]int{}
	for i := range states {
		id, ok := wanted(&states[i])
		if !ok {
			continue
		}
		if n, has := at[id]; has {
			out[n] = &states[i]
			continue
		}
		at[id] = len(out)
		out = append(out, &states[i])
	}
	return out
}

type view struct {
	tasks        []*usage.Task
	observations []*usage.Observation
	links        []*usage.Link
	since        time.Time
}

func each[T any](all []*T, wanted func(*T) bool) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for _, one := range all {
			if wanted(one) && !yield(one, nil) {
				return
			}
		}
	}
}

// Tasks yields the tasks that were created in the period.
func (v *view) Tasks(p usage.Period) iter.Seq2[*usage.Task, error] {
	return each(v.tasks, func(t *usage.Task) bool { return p.Has(t.CreatedAt) })
}

// Task returns one task.
func (v *view) Task(uid string) (*usage.Task, error) {
	if i := slices.IndexFunc(v.tasks, func(t *usage.Task) bool { return t.UID == uid }); i >= 0 {
		return v.tasks[i], nil
	}
	return nil, nil //nolint:nilnil // not known
}

// Observations yields the observations that started in the period.
func (v *view) Observations(p usage.Period) iter.Seq2[*usage.Observation, error] {
	return each(v.observations, func(o *usage.Observation) bool { return p.Has(o.StartedAt) })
}

// Observation returns one observation.
func (v *view) Observation(id string) (*usage.Observation, error) {
	for _, o := range v.observations {
		if o.ID == id {
			return o, nil
		}
	}
	return nil, nil //nolint:nilnil // not known
}

// OfTask yields the observations of one task.
func (v *view) OfTask(uid string) iter.Seq2[*usage.Observation, error] {
	return each(v.observations, func(o *usage.Observation) bool { return o.TaskUID == uid })
}

// Links yields the links of a task, or all of them.
func (v *view) Links(uid string) iter.Seq2[*usage.Link, error] {
	return each(v.links, func(l *usage.Link) bool { return uid == "" || l.TaskUID == uid })
}

// Link returns one link.
func (v *view) Link(id string) (*usage.Link, error) {
	if i := slices.IndexFunc(v.links, func(l *usage.Link) bool { return l.ID == id }); i >= 0 {
		return v.links[i], nil
	}
	return nil, nil //nolint:nilnil // not known
}

// Unmerged yields the links of a repository that are not known to be merged.
func (v *view) Unmerged(repository string) iter.Seq2[*usage.Link, error] {
	sorted := slices.SortedFunc(slices.Values(v.links), func(a, b *usage.Link) int {
		return cmp.Or(a.ObservedAt.Compare(b.ObservedAt), cmp.Compare(a.ID, b.ID))
	})
	return each(sorted, func(l *usage.Link) bool {
		return l.State != usage.PRMerged && strings.EqualFold(l.Repository, repository)
	})
}

// Joined returns the tasks that have a join, by the states that can be seen.
func (v *view) Joined(j usage.Join) iter.Seq2[*usage.Task, error] {
	return each(v.tasks, func(t *usage.Task) bool {
		return slices.Contains(t.Joins(), j) || slices.ContainsFunc(v.links, func(l *usage.Link) bool {
			return l.TaskUID == t.UID && slices.Contains(l.Joins(), j)
		})
	})
}

// Indexed reports true.
func (*view) Indexed() bool { return true }

// RetainedSince returns the time from which records are complete.
func (v *view) RetainedSince() time.Time { return v.since }

// Close has nothing to release.
func (*view) Close() {}
