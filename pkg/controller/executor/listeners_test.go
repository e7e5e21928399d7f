// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

// TestListeners: each listener is called once for each run, until its context ends, even if a listener calls Add or
// Tell.
func TestListeners(t *testing.T) {
	var l Listeners
	l.Tell(Ref{Name: "nobody listens"})
	var first, second []string
	ctx, stop := context.WithCancel(t.Context())
	l.Add(ctx, func(r Ref) { first = append(first, r.Name) })
	l.Add(t.Context(), func(r Ref) {
		if second = append(second, r.Name); r.Name == "a" {
			l.Add(t.Context(), func(Ref) {})
			l.Tell(Ref{Name: "b"})
		}
	})
	l.Tell(Ref{Name: "a"})
	if len(first) != 2 || len(second) != 2 {
		t.Errorf("told of %v and %v", first, second)
	}
	stop()
	for left := 3; left > 2; { // it is removed in a separate goroutine
		l.mu.Lock()
		left = len(l.fs)
		l.mu.Unlock()
		runtime.Gosched()
	}
	l.Tell(Ref{Name: "c"})
	if len(first) != 2 || len(second) != 3 {
		t.Errorf("told of %v and %v", first, second)
	}
}

// TestListenersAtOnce is for the race detector. A listener that stays registered is called for all runs.
func TestListenersAtOnce(t *testing.T) {
	const n = 100
	var l Listeners
	var mu sync.Mutex
	heard := map[int32]int{}
	l.Add(t.Context(), func(r Ref) {
		mu.Lock()
		defer mu.Unlock()
		heard[r.Attempt]++
	})
	var wg sync.WaitGroup
	for i := range int32(n) {
		wg.Go(func() { l.Tell(Ref{Attempt: i}) })
		wg.Go(func() {
			ctx, stop := context.WithCancel(t.Context())
			l.Add(ctx, func(Ref) {})
			stop()
		})
	}
	wg.Wait()
	for i, times := range heard {
		if times != 1 {
			t.Errorf("told %d times of %d", times, i)
		}
	}
	if len(heard) != n {
		t.Errorf("told of %d runs", len(heard))
	}
}
