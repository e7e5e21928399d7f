// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// ByKeys returns the events of a stream that were appended under de-duplication keys, and that are in the state at rev. An
// event that is not there is nil. It reads nothing but these events. It reports false if the stream was deleted or
// trimmed; List can then still read the state at rev.
func (r *Reader) ByKeys(_ context.Context, s Stream, rev uint64, keys ...string) ([]*v1alpha1.ExecutionEvent, bool, error) {
	type answer struct {
		events []*v1alpha1.ExecutionEvent
		whole  bool
	}
	got, err := unpurged(r.shared, func() (answer, error) {
		v, ok, err := r.byUID(s.UID)
		if err != nil || !ok || v.deleted != 0 || v.oldest > 1 {
			return answer{}, err
		}
		events := make([]*v1alpha1.ExecutionEvent, len(keys))
		for i, key := range keys {
			if events[i], err = r.byKey(&v, key, rev); err != nil {
				return answer{}, err
			}
		}
		return answer{events, true}, nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("events of %s by their keys: %w", s, err)
	}
	return got.events, got.whole, nil
}

func (r *Reader) byKey(v *view, key string, rev uint64) (*v1alpha1.ExecutionEvent, error) {
	seq, ok, err := r.number(dedupKey(v.no, key))
	if err != nil || !ok || int64(seq) > v.last { // the store may show a commit in flight
		return nil, err
	}
	raw, ok, err := r.engine.Get(dataKey(v.no, int64(seq)))
	if err == nil && !ok {
		err = &CorruptError{dataKey(v.no, int64(seq)), ErrNotFound}
	}
	if err != nil {
		return nil, err
	}
	e, _, err := v.decode(int64(seq), raw)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
	if err != nil || at > rev {
		return nil, err
	}
	return e, nil
}

// CountBetween returns how many events of a type a stream has with a seq after from, up to and including to. It reads the index of
// the type, and no event.
func (r *Reader) CountBetween(_ context.Context, s Stream, t v1alpha1.EventType, from, to int64) (n int64, err error) {
	code, ok := typeCodes[t]
	if !ok {
		return 0, fmt.Errorf("count events of %s: %w", s, &event.FieldError{Field: "type", Value: string(t), Rule: "is not an event type"})
	}
	v, ok, err := r.byUID(s.UID)
	if err != nil || !ok || v.deleted != 0 {
		return 0, err
	}
	it, err := r.engine.NewIter(facetKey(v.no, code, max(from+1, v.oldest)), facetKey(v.no, code, min(to, v.last)+1))
	if err != nil {
		return 0, fmt.Errorf("count events of %s: %w", s, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return n, it.Error()
}
