// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// A cohort is what a report shows as one request: the tasks of a tree, their forks, and the tasks that name or are linked
// with the same issue or pull request, with all their observations and links. It is removed as a whole, once all of its tasks have
// ended and nothing of it was recorded for the time of retention. Usage without a task is a cohort of its own. A removal waits for the
// views that are open, so no report loses records while it is being made.

// Retention removes old records of a ledger.
type Retention struct{ *Ledger }

// Expire removes the cohorts of all namespaces that were inactive since a time. It returns how many it removed.
func (l Retention) Expire(ctx context.Context, inactive time.Time) (removed int, err error) {
	for from := []byte("uo"); ; {
		// A namespace without observations has nothing to remove that takes space; its tasks go with the next ones.
		namespace, ok, err := l.namespaceFrom(from)
		if err != nil || !ok {
			return removed, err
		}
		n, err := l.expireNamespace(ctx, namespace, inactive)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("expire usage of namespace %s: %w", namespace, err)
		}
		from = after(named('o', namespace))
	}
}

// namespaceFrom returns the first namespace with an observation at or after a key.
func (l Retention) namespaceFrom(from []byte) (namespace string, ok bool, err error) {
	it, err := l.engine.NewIter(from, []byte("up"))
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return "", false, it.Error()
	}
	name, _, ok := bytes.Cut(it.Key()[2:], []byte{0})
	return string(name), ok, nil
}

// cohort is a set of tasks. Sets are joined by pointing to one another.
type cohort struct {
	joined *cohort
	tasks  []*usage.Task
	active bool
	newest time.Time
}

func (c *cohort) top() *cohort {
	for c.joined != nil {
		c = c.joined
	}
	return c
}

func (c *cohort) join(other *cohort) {
	if a, b := c.top(), other.top(); a != b {
		b.joined = a
	}
}

// cohorts groups the tasks of a view.
func cohorts(v usage.View) (map[*cohort]bool, error) {
	named := map[usage.Join]*cohort{}
	get := func(j usage.Join) *cohort {
		if named[j] == nil {
			named[j] = &cohort{}
		}
		return named[j]
	}
	var all []*usage.Task
	for t, err := range v.Tasks(usage.Period{}) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
		c := get(usage.JoinTask(t.UID))
		for _, j := range append(t.Joins(), usage.JoinTask(t.RootTaskUID)) {
			c.join(get(j))
		}
	}
	for l, err := range v.Links("") {
		if err != nil {
			return nil, err
		}
		for _, j := range l.Joins() {
			get(usage.JoinTask(l.TaskUID)).join(get(j))
		}
	}
	out := map[*cohort]bool{}
	for _, t := range all {
		c := get(usage.JoinTask(t.UID)).top()
		c.tasks = append(c.tasks, t)
		c.active = c.active || !t.Ended()
		if t.ObservedAt.After(c.newest) {
			c.newest = t.ObservedAt
		}
		out[c] = true
	}
	return out, nil
}

func (l Retention) expireNamespace(ctx context.Context, namespace string, inactive time.Time) (removed int, err error) {
	v, err := l.openView(ctx, namespace, l.clock.Now())
	if err != nil {
		return 0, err
	}
	defer v.Close()
	all, err := cohorts(v)
	if err != nil {
		return 0, err
	}
	for c := range all {
		if c.active || !c.newest.Before(inactive) {
			continue
		}
		gone, err := l.expireCohort(v, c, namespace, inactive)
		if err != nil {
			return removed, err
		}
		if gone {
			removed++
		}
	}
	n, err := l.expireOthers(v, namespace, inactive)
	return removed + n, err
}

// removal collects the keys of records.
type removal struct {
	ranges [][]byte // all states of a record
	keys   [][]byte
	newest time.Time // start of the newest record
}

func (r *removal) started(t time.Time) {
	if t.After(r.newest) {
		r.newest = t
	}
}

// expireCohort removes a cohort, unless one of its observations or links is newer.
func (l Retention) expireCohort(v usage.View, c *cohort, namespace string, inactive time.Time) (bool, error) {
	r := &removal{}
	for _, t := range c.tasks {
		for o, err := range v.OfTask(t.UID) {
			if err != nil {
				return false, err
			}
			if !o.ObservedAt.Before(inactive) {
				return false, nil
			}
			r.ranges = append(r.ranges, observationKey(o.Namespace, o.StartedAt, o.ID))
			r.keys = append(r.keys, ofTaskKey(o), byIDKey(o.ID))
			r.started(o.StartedAt)
		}
		for link, err := range v.Links(t.UID) {
			if err != nil {
				return false, err
			}
			if !link.RecordedAt.Before(inactive) {
				return false, nil
			}
			r.ranges = append(r.ranges, linkKey(link.Namespace, link.ID))
			if err := l.expireLinkJoins(r, link); err != nil {
				return false, err
			}
		}
		if err := l.expireJoins(r, t); err != nil {
			return false, err
		}
		r.ranges = append(r.ranges, taskKey(t.Namespace, t.CreatedAt, t.UID))
		r.keys = append(r.keys, taskOfKey(t.UID), stateKey(t.UID))
		r.started(t.CreatedAt)
	}
	return true, l.remove(namespace, r)
}

// expireJoins collects the rows that lead to a task, of all of its states.
func (l Retention) expireJoins(r *removal, t *usage.Task) error {
	key := taskKey(t.Namespace, t.CreatedAt, t.UID)
	return l.eachOf(key, func(k, value []byte) error {
		state, err := decodeTask(k, value)
		if err == nil {
			r.keys = append(r.keys, keysOfTask(state)...)
		}
		return err
	})
}

// expireLinkJoins is expireJoins for a link.
func (l Retention) expireLinkJoins(r *removal, link *usage.Link) error {
	return l.eachOf(linkKey(link.Namespace, link.ID), func(k, value []byte) error {
		state, err := decodeLink(k, value)
		if err != nil {
			return err
		}
		keys, err := keysOfLink(l.engine, state)
		r.keys = append(append(r.keys, keys...), dueKey(state))
		return err
	})
}

// eachOf calls f for all states of a record.
func (l Retention) eachOf(record []byte, f func(key, value []byte) error) (err error) {
	it, err := l.engine.NewIter(record, after(record))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}

// expireOthers removes observations without a task, or whose task is not recorded.
func (l Retention) expireOthers(v usage.View, namespace string, inactive time.Time) (int, error) {
	r := &removal{}
	for o, err := range v.Observations(usage.Period{Until: inactive}) {
		if err != nil {
			return 0, err
		}
		if o.Open() || !o.ObservedAt.Before(inactive) {
			continue
		}
		if o.TaskUID != "" {
			if t, err := v.Task(o.TaskUID); err != nil {
				return 0, err
			} else if t != nil {
				continue
			}
			r.keys = append(r.keys, ofTaskKey(o))
		}
		r.ranges, r.keys = append(r.ranges, observationKey(o.Namespace, o.StartedAt, o.ID)), append(r.keys, byIDKey(o.ID))
		r.started(o.StartedAt)
	}
	if len(r.ranges) == 0 {
		return 0, nil
	}
	return len(r.ranges), l.remove(namespace, r)
}

// remove removes records in one commit, and notes from when on the others are complete.
func (l Retention) remove(namespace string, r *removal) error {
	l.views.Lock() // so that no report has a request without its measurements
	defer l.views.Unlock()
	return l.commit(engine.Free, func(b engine.Batch) error {
		var err error
		for _, k := range r.ranges {
			err = errors.Join(err, b.DeleteRange(k, after(k)))
		}
		for _, k := range r.keys {
			err = errors.Join(err, b.Delete(k))
		}
		since := r.newest.UnixNano() + 1
		v, ok, got := l.engine.Get(removedKey(namespace))
		if ok && len(v) == timeLen {
			since = max(since, int64(binary.BigEndian.Uint64(v)))
		}
		return errors.Join(err, got, b.Set(removedKey(namespace), binary.BigEndian.AppendUint64(nil, uint64(since))))
	})
}
