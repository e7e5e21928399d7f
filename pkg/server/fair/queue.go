// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"slices"
	"sync"
)

// Queue is a Share that callers wait for. Callers are served in the order in which they asked, but a user who holds as much as
// they may delays nobody else. All methods may be called concurrently.
type Queue struct {
	total int64

	mu      sync.Mutex
	share   *Share
	waiting []*waiter // in the order in which they asked
}

type waiter struct {
	user  string
	n     int64
	ready chan struct{} // closed when n is held
}

// NewQueue makes a queue for a total of which nothing is held.
func NewQueue(total int64) *Queue { return &Queue{total: total, share: New(total)} }

// Acquire waits until n can be held for a user and returns how much is held, which is at most the total; the caller must give it
// back. If ctx ends before that, nothing is held, and the error is that of ctx.
func (q *Queue) Acquire(ctx context.Context, user string, n int64) (held int64, err error) {
	w := &waiter{user: user, n: min(n, q.total), ready: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	q.serve()
	q.mu.Unlock()
	select {
	case <-w.ready:
		return w.n, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else { // it was served at the same time
		q.share.Release(user, w.n)
	}
	q.serve()
	return 0, ctx.Err()
}

// Release gives back n of what a user holds.
func (q *Queue) Release(user string, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.share.Release(user, n)
	q.serve()
}

// Held returns how much is held, and how many callers wait.
func (q *Queue) Held() (n int64, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, _ = q.share.Held()
	return n, len(q.waiting)
}

// serve gives their amounts to those who wait, up to the first that does not fit into what is free.
func (q *Queue) serve() {
	full := map[string]bool{} // users whose first waiter would exceed what a user may hold
	for i := 0; i < len(q.waiting); {
		w := q.waiting[i]
		switch held, _ := q.share.Held(); {
		case full[w.user]:
			i++
		case q.share.Acquire(w.user, w.n):
			close(w.ready)
			q.waiting = slices.Delete(q.waiting, i, i+1)
		case w.n > q.total-held:
			return
		default:
			full[w.user] = true
			i++
		}
	}
}
