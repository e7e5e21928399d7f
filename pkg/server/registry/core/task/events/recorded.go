// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/storage/recording"
)

// recordedKey is the key of a recording.Given in a context.
type recordedKey struct{}

// recorded takes what is to be recorded out of events, before anything else sees them, and returns a context that has it for append.
func (r *Events) recorded(ctx context.Context, events ...*v1alpha1.ExecutionEvent) (context.Context, error) {
	given := recording.Given{}
	for i, e := range events {
		rec := e.Recording
		if e.Recording = nil; rec == nil {
			continue
		}
		mode := cmp.Or(rec.Mode, r.o.Recording)
		if mode == v1alpha1.RecordingOff {
			continue
		}
		p, err := recording.Prepare(e, rec, mode)
		if err != nil {
			err = apierrors.NewBadRequest(err.Error())
			if len(events) > 1 {
				err = refusal.At(fmt.Sprintf("items[%d]: ", i), err)
			}
			r.o.Log.Refused(events...)
			return nil, err
		}
		given[events[i]] = p
	}
	if len(given) == 0 {
		return ctx, nil
	}
	return context.WithValue(ctx, recordedKey{}, given), nil
}

// givenFor returns what the context has for events, for their sanitized copies in the same order.
func givenFor(ctx context.Context, events, clean []*v1alpha1.ExecutionEvent) recording.Given {
	given, _ := ctx.Value(recordedKey{}).(recording.Given)
	if given == nil {
		return nil
	}
	of := recording.Given{}
	for i, e := range events {
		if p := given[e]; p != nil {
			of[clean[i]] = p
		}
	}
	return of
}
