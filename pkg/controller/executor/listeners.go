// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Listeners are those whom an Executor tells about runs that end. The zero value
// has none, and all may be called at once from anywhere.
type Listeners struct {
	mu sync.Mutex
	fs map[*func(Ref)]struct{}
}

// Add has f told about every run that ends, until the context does.
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

// Tell tells all that a run ended, one after the other, and returns then. A
// listener may call Add and Tell itself.
func (l *Listeners) Tell(r Ref) {
	l.mu.Lock()
	fs := slices.Collect(maps.Keys(l.fs))
	l.mu.Unlock()
	for _, f := range fs {
		(*f)(r)
	}
}
