// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

var _ usage.Reader = (*Ledger)(nil)

// At returns the records of a namespace as of a time. It waits until every change that was given an earlier time can be
// read, which costs no write to the disk.
func (l *Ledger) At(ctx context.Context, namespace string, asOf time.Time) (usage.View, error) {
	l.views.RLock()
	v, err := l.openView(ctx, namespace, asOf)
	if err != nil {
		l.views.RUnlock()
		return nil, err
	}
	v.release = l.views.RUnlock
	return v, nil
}

// openView is At for a caller that removes records.
func (l *Ledger) openView(ctx context.Context, namespace string, asOf time.Time) (*view, error) {
	l.Drain()
	err := l.commit(engine.Nothing, func(engine.Batch) error {
		l.last = max(l.last, asOf.UnixNano())
		return nil
	})
	if err != nil {
		return nil, err
	}
	v, ok, err := l.engine.Get(removedKey(namespace))
	if err != nil {
		return nil, err
	}
	w := &view{ctx: ctx, ledger: l, namespace: namespace, asOf: asOf, release: func() {}}
	if ok && len(v) == timeLen {
		w.since = time.Unix(0, int64(binary.BigEndian.Uint64(v))).UTC()
	}
	return w, nil
}

// view is a usage.View. It opens an iterator for each iteration: states that are recorded later are newer than asOf.
type view struct {
	ctx       context.Context //nolint:containedctx // of the request that the view is for
	ledger    *Ledger
	namespace string
	asOf      time.Time
	since     time.Time
	release   func()
}

// RetainedSince returns the time before which records were removed.
func (v *view) RetainedSince() time.Time { return v.since }

// Close lets records be removed.
func (v *view) Close() {
	v.release()
	v.release = func() {}
}

// newest calls f with the newest state as of the view's time of each record in a range of keys, until f returns false.
func (v *view) newest(lo, hi []byte, f func(key, value []byte) (bool, error)) (err error) {
	it, err := v.ledger.engine.NewIter(lo, hi)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var done []byte // the record that was yielded last
	passed := 0     // states of one record that were passed over
	for ok := it.First(); ok; {
		key := it.Key()
		at, err := recordedAt(key)
		if err != nil {
			return err
		}
		record := key[:len(key)-timeLen]
		switch later := at.After(v.asOf); {
		case bytes.Equal(record, done):
			ok = pass(it, &passed, after, record)
			continue
		case later:
			ok = pass(it, &passed, func(k []byte) []byte { return appendNewest(bytes.Clone(k), v.asOf) }, record)
			continue
		}
		done, passed = append(done[:0], record...), 0
		if err := v.ctx.Err(); err != nil {
			return err
		}
		if more, err := f(key, it.Value()); err != nil || !more {
			return err
		}
		ok = it.Next()
	}
	return it.Error()
}

// near is how many states are passed over one by one. What was observed many times has more, and a seek passes all of them over.
const near = 4

// pass moves to the next state, or to a key that is made of the record once several states were passed over.
func pass(it engine.Iter, passed *int, to func(record []byte) []byte, record []byte) bool {
	if *passed++; *passed <= near {
		return it.Next()
	}
	*passed = 0
	return it.SeekGE(to(record))
}

// each is newest as an iterator of decoded records.
func each[T any](v *view, lo, hi []byte, decode func(key, value []byte) (*T, error), takes func(*T) bool) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		stopped := false
		err := v.newest(lo, hi, func(key, value []byte) (bool, error) {
			r, err := decode(key, value)
			if err != nil {
				return false, err
			}
			if takes(r) {
				stopped = !yield(r, nil)
			}
			return !stopped, nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// span returns the keys of a kind in a period.
func (v *view) span(kind byte, p usage.Period) (lo, hi []byte) {
	start := named(kind, v.namespace)
	lo, hi = appendTime(start, p.From), after(start)
	if !p.Until.IsZero() {
		hi = appendTime(named(kind, v.namespace), p.Until)
	}
	return lo, hi
}

// Tasks yields the tasks that were created in a period.
func (v *view) Tasks(p usage.Period) iter.Seq2[*usage.Task, error] {
	lo, hi := v.span('t', p)
	return each(v, lo, hi, decodeTask, func(*usage.Task) bool { return true })
}

// Observations yields the observations that started in a period.
func (v *view) Observations(p usage.Period) iter.Seq2[*usage.Observation, error] {
	lo, hi := v.span('o', p)
	return each(v, lo, hi, decodeObservation, func(*usage.Observation) bool { return true })
}

// Links yields the links of a task, or all of them.
func (v *view) Links(uid string) iter.Seq2[*usage.Link, error] {
	if uid != "" && v.Indexed() {
		return v.linksOf(uid)
	}
	lo := named('l', v.namespace)
	return each(v, lo, after(lo), decodeLink, func(l *usage.Link) bool { return uid == "" || l.TaskUID == uid })
}

// Task returns one task.
func (v *view) Task(uid string) (found *usage.Task, err error) {
	key, ok, err := v.ledger.engine.Get(taskOfKey(uid))
	if err != nil || !ok {
		return nil, err
	}
	err = v.newest(key, after(key), func(key, value []byte) (bool, error) {
		found, err = decodeTask(key, value)
		return false, err
	})
	if found != nil && found.Namespace != v.namespace {
		return nil, err
	}
	return found, err
}

// OfTask yields the observations of one task.
func (v *view) OfTask(uid string) iter.Seq2[*usage.Observation, error] {
	return func(yield func(*usage.Observation, error) bool) {
		keys, err := ofTask(v.ledger.engine, uid)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, k := range keys {
			if k.namespace != v.namespace {
				continue
			}
			for o, err := range each(v, k.key, after(k.key), decodeObservation, func(*usage.Observation) bool { return true }) {
				if !yield(o, err) || err != nil {
					return
				}
			}
		}
	}
}

// place is where an observation is.
type place struct {
	namespace string
	key       []byte
	index     []byte // its key in the index of its task
}

// ofTask returns where the observations of a task are.
func ofTask(e engine.Reader, uid string) (list []place, err error) {
	prefix := named('x', uid)
	it, err := e.NewIter(prefix, after(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		namespace := string(it.Value())
		list = append(list, place{
			namespace: namespace, index: bytes.Clone(it.Key()), key: append(named('o', namespace), it.Key()[len(prefix):]...),
		})
	}
	return list, it.Error()
}

// Observation returns one observation. While the index of an older store is being made, it may read all of the namespace.
func (v *view) Observation(id string) (found *usage.Observation, err error) {
	key, ok, err := v.ledger.engine.Get(byIDKey(id))
	switch {
	case err != nil:
		return nil, err
	case !ok && !v.Indexed():
		for o, err := range v.Observations(usage.Period{}) {
			if err != nil || o.ID == id {
				return o, err
			}
		}
		return nil, nil //nolint:nilnil // not found
	case !ok || !bytes.HasPrefix(key, named('o', v.namespace)):
		return nil, nil //nolint:nilnil // of no observation of the namespace
	}
	err = v.newest(key, after(key), func(key, value []byte) (bool, error) {
		found, err = decodeObservation(key, value)
		return false, err
	})
	return found, err
}

// Get returns the newest state of one observation of a namespace by its ID; nil if there is none.
func (l *Ledger) Get(ctx context.Context, namespace, id string) (*usage.Observation, error) {
	v, err := l.At(ctx, namespace, l.clock.Now())
	if err != nil {
		return nil, err
	}
	defer v.Close()
	return v.Observation(id)
}
