// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestQueueOrder: who asked first is served first, a large amount is not overtaken for ever by small ones, and a user who holds as
// much as they may holds up nobody else.
func TestQueueOrder(t *testing.T) {
	ctx := t.Context()
	q := NewQueue(10)
	served := make(chan string, 10)
	begin := func(user string, n int64) {
		t.Helper()
		_, before := q.Held()
		go func() {
			if _, err := q.Acquire(ctx, user, n); err == nil {
				served <- fmt.Sprint(user, n)
			}
		}()
		for {
			if _, now := q.Held(); now > before {
				return
			}
		}
	}
	now := func(user string, n int64) {
		t.Helper()
		if held, err := q.Acquire(ctx, user, n); err != nil || held != n {
			t.Fatal(held, err)
		}
	}
	now("a", 5)
	begin("a", 4) // fits, but a user holds at most what remains free
	now("b", 3)
	begin("b", 10)
	begin("c", 1) // fits, but was asked for after what does not fit
	q.Release("b", 3)
	q.Release("a", 5)
	if got := <-served; got != "a4" {
		t.Fatal(got)
	}
	q.Release("a", 4)
	if got := <-served; got != "b10" {
		t.Fatal(got)
	}
	q.Release("b", 10)
	if got := <-served; got != "c1" {
		t.Fatal(got)
	}
}

// TestQueueGivesUp: a caller that gives up holds nothing, and those after it are served.
func TestQueueGivesUp(t *testing.T) {
	q := NewQueue(10)
	if held, err := q.Acquire(t.Context(), "a", 100); err != nil || held != 10 {
		t.Fatalf("held %d, %v; more than the total is the total", held, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := q.Acquire(ended, "b", 10); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	q.Release("a", 10)
	if n, waiting := q.Held(); n != 0 || waiting != 0 {
		t.Fatalf("%d held, %d wait", n, waiting)
	}
}

// TestQueueBound: whatever users do, no more than the total is held, and everything comes back.
func TestQueueBound(t *testing.T) {
	const total = 100
	q := NewQueue(total)
	var held atomic.Int64
	var users sync.WaitGroup
	for u := range 20 {
		users.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				user := fmt.Sprint("user", u%5)
				if n, err := q.Acquire(ctx, user, rand.Int64N(2*total)+1); err == nil {
					if now := held.Add(n); now > total {
						t.Errorf("%d are held", now)
					}
					held.Add(-n)
					q.Release(user, n)
				}
				cancel()
			}
		})
	}
	users.Wait()
	if n, waiting := q.Held(); n != 0 || waiting != 0 {
		t.Fatalf("%d held, %d wait", n, waiting)
	}
}
