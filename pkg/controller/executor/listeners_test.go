// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"runtime"
	"sync"
	"testing"
)

// TestListeners: each is told of each run once, until its context ends, also where one calls itself again.
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
	for left := 3; left > 2; { // it is taken away in a goroutine of its own
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

// TestListenersAtOnce is for the race detector. Who listens all the time hears of all runs.
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
