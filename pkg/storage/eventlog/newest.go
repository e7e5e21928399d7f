// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// Newest returns the first and the newest kept event of a type in a task's stream, which may be the same one. Both are
// nil if there is none or the stream was deleted. The cost does not depend on the length of the stream.
func (r *Reader) Newest(_ context.Context, s Stream, t v1alpha1.EventType) (first, newest *v1alpha1.ExecutionEvent, err error) {
	code, ok := typeCodes[t]
	if !ok {
		return nil, nil, fmt.Errorf("newest event of %s: %w", s, &event.FieldError{Field: "type", Value: string(t), Rule: "is not an event type"})
	}
	type pair [2]*v1alpha1.ExecutionEvent
	got, err := unpurged(r.shared, func() (pair, error) {
		first, newest, err := ends(r, s, code)
		return pair{first, newest}, err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("newest event of %s: %w", s, err)
	}
	return got[0], got[1], nil
}

// ends returns the first and the newest event in an index of a stream.
func ends(r *Reader, s Stream, f facet) (first, newest *v1alpha1.ExecutionEvent, err error) {
	v, ok, err := r.byUID(s.UID)
	if err != nil || !ok || v.deleted != 0 {
		return nil, nil, err
	}
	// The head bounds the range to what is published.
	it, err := r.engine.NewIter(facetKey(v.no, f, v.oldest), facetKey(v.no, f, v.last+1))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	read := func(found bool) (*v1alpha1.ExecutionEvent, error) {
		if !found {
			return nil, it.Error()
		}
		p, err := parseFacet(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		raw, ok, err := r.engine.Get(dataKey(v.no, p.seq))
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, &CorruptError{dataKey(v.no, p.seq), ErrNotFound}
		}
		e, _, err := v.decode(p.seq, raw)
		return e, err
	}
	if newest, err = read(it.Last()); err != nil || newest == nil {
		return nil, nil, err
	}
	first, err = read(it.First())
	return first, newest, err
}
