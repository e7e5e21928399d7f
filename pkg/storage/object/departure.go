// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// departure is how far an object is on its way out of the store. An object with finalizers is first marked as deleted, and
// removed when it has no finalizer any more.
type departure struct {
	deleted    bool
	finalizers int
}

func departureOf(obj runtime.Object) departure {
	m, err := meta.Accessor(obj)
	if err != nil {
		return departure{}
	}
	return departure{deleted: m.GetDeletionTimestamp() != nil, finalizers: len(m.GetFinalizers())}
}

// proceeds reports whether an update brings the object closer to its removal. An object has few such updates, because the
// API lets nobody add finalizers to a deleted object. They are accepted on a full disk, where more of them could use up the
// reserve.
func (d departure) proceeds(now departure) bool {
	return now.deleted && (!d.deleted || now.finalizers < d.finalizers)
}

type discardKey struct{}

// Discarding returns a context whose updates are accepted on a full disk, like deletes. It is for a change by which a user
// gives an object up, and which an object has once: a repetition must change nothing, and what undoes it must be an ordinary
// update.
func Discarding(ctx context.Context) context.Context {
	return context.WithValue(ctx, discardKey{}, true)
}

func discards(ctx context.Context) bool { return ctx.Value(discardKey{}) != nil }
