// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// maxLooked is how many records a page looks at. A page of a query whose filters select few records may therefore have fewer than its limit,
// even none, and yet a continue.
const maxLooked = 10_000

// page returns a page of records, the newest first, and the last one that was looked at if there are more.
func (l *ledger[T]) page(ctx context.Context, s *selection) (found []T, last *place, err error) {
	for _, few := range [][2]string{{l.event, s.Event}, {l.task, s.Task}, {l.session, s.Session}} {
		if few[1] != "" {
			return l.few(ctx, s, few[0], few[1])
		}
	}
	return l.walk(ctx, s)
}

// placed is a record and its place.
type placed[T any] struct {
	place

	record T
}

func (l *ledger[T]) place(obj T) place {
	return place{metav1.NewMicroTime(l.of(obj).created), obj.GetName()}
}

// errMany ends the search of few records that are many.
var errMany = errors.New("too many records")

// few returns a page of the records of one session, task or event. They are few, so all of them are read and sorted.
func (l *ledger[T]) few(ctx context.Context, s *selection, field, value string) (found []T, last *place, err error) {
	var all []placed[T]
	looked := 0
	err = l.stored.Select(ctx, s.namespace, fields.OneTermEqualSelector(field, value), func(obj T) error {
		if looked++; looked > l.looks {
			return errMany
		}
		if at := l.place(obj); s.selects(l.of(obj)) && (s.after == nil || s.after.compare(at) < 0) {
			all = append(all, placed[T]{at, obj})
		}
		return nil
	})
	if errors.Is(err, errMany) {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("more than %d %s have %s=%s: ask by gateway or states instead", l.looks, l.name, field, value))
	}
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b placed[T]) int { return a.compare(b.place) })
	if len(all) > s.limit {
		all = all[:s.limit]
		last = &all[s.limit-1].place
	}
	for i := range all {
		found = append(found, all[i].record)
	}
	return found, last, nil
}

// walk returns a page from the rows of the namespace, of a gateway or of a state, which are in the order of the answer.
func (l *ledger[T]) walk(ctx context.Context, s *selection) (found []T, last *place, err error) {
	field, prefix := l.rows(s)
	from, to := prefix, NewestEnd(prefix)
	if s.after != nil {
		from += newest(s.after.CreatedAt.Time)
	}
	var end place
	looked, more := 0, false
	err = l.stored.Scan(ctx, field, from, to, func(_ string, obj T) (bool, error) {
		at := l.place(obj)
		if s.after != nil && s.after.compare(at) >= 0 { // of the same microsecond
			return true, nil
		}
		if len(found) == s.limit || looked == l.looks {
			more = true
			return false, nil
		}
		looked, end = looked+1, at
		if s.selects(l.of(obj)) {
			found = append(found, obj)
		}
		return true, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if more {
		last = &end
	}
	return found, last, nil
}

// rows returns the rows that have the fewest records of those that are asked for.
func (l *ledger[T]) rows(s *selection) (field, prefix string) {
	state := ""
	if len(s.States) == 1 {
		state = s.States[0]
	}
	switch {
	case state != "" && (state != l.usual || s.Gateway == ""):
		return FieldNewestState, NewestPrefix(s.namespace, state)
	case s.Gateway != "":
		return FieldNewestGateway, NewestPrefix(s.namespace, s.Gateway)
	}
	return FieldNewest, NewestPrefix(s.namespace, "")
}
