// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Listeners are functions that an Executor calls for every run that ends. The zero value is
// empty and ready to use. All methods are safe for concurrent use.
type Listeners struct {
	mu sync.Mutex
	fs map[*func(Ref)]struct{}
}

// Add registers f to be called for every run that ends, until the context ends.
func (l *Listeners) Add(ctx context.Context, f func(Ref)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fs == nil {
		l.fs = map[*func(Ref)]struct{}{}
	}
	l.fs[&f] = struct{}{}
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.fs, &f)
	})
}

// Tell calls all listeners, one after the other, for a run that ended. A listener may call Add
// and Tell itself.
func (l *Listeners) Tell(r Ref) {
	l.mu.Lock()
	fs := slices.Collect(maps.Keys(l.fs))
	l.mu.Unlock()
	for _, f := range fs {
		(*f)(r)
	}
}
