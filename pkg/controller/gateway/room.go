// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// room limits how many deliveries of one gateway are sent at once. Sessions that find no room are woken in the order in which they came, when
// there is. While the adapter of a gateway cannot be reached, there is room for one that tries, and the others wait for its success.
type room struct {
	most int

	mu      sync.Mutex
	of      map[types.UID]*crowd
	enqueue func(reconcile.Request)
}

// crowd are the sessions of a gateway.
type crowd struct {
	inside  int
	down    bool
	waiting []reconcile.Request
}

func newRoom(most int) *room { return &room{most: max(most, 1), of: map[types.UID]*crowd{}} }

// wake says how sessions are woken.
func (r *room) wake(enqueue func(reconcile.Request)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enqueue = enqueue
}

// enter reports whether there is room. If so, leave has to be called; if not, the session is woken when there is.
func (r *room) enter(gateway types.UID, session reconcile.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of[gateway]
	if c == nil {
		c = &crowd{}
		r.of[gateway] = c
	}
	if c.inside >= r.limit(c) {
		if !slices.Contains(c.waiting, session) {
			c.waiting = append(c.waiting, session)
		}
		return false
	}
	c.waiting = slices.DeleteFunc(c.waiting, func(w reconcile.Request) bool { return w == session })
	c.inside++
	return true
}

func (r *room) limit(c *crowd) int {
	if c.down {
		return 1
	}
	return r.most
}

// leave makes room. reached says whether the adapter could be reached.
func (r *room) leave(gateway types.UID, reached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of[gateway]
	c.inside--
	c.down = !reached
	r.admit(gateway, c)
}

// open says that the adapter of a gateway can be reached again.
func (r *room) open(gateway types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.of[gateway]; c != nil {
		c.down = false
		r.admit(gateway, c)
	}
}

// admit wakes as many of those that wait as there is room. One that cannot reach the adapter tries again by itself.
func (r *room) admit(gateway types.UID, c *crowd) {
	if c.down {
		return
	}
	n := min(len(c.waiting), max(r.most-c.inside, 0))
	for _, session := range c.waiting[:n] {
		r.enqueue(session)
	}
	c.waiting = c.waiting[n:]
	if c.inside == 0 && len(c.waiting) == 0 {
		delete(r.of, gateway)
	}
}

// hints remember for which sessions nothing has to be waited for any more. They are not kept across a start: what waits is tried anyway.
type hints struct{ sessions sync.Map }

// then gives a hint for each session that a function returns, and wakes it.
func (h *hints) then(sessions handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		all := sessions(ctx, o)
		for _, r := range all {
			h.add(r.NamespacedName)
		}
		return all
	})
}

func (h *hints) add(session types.NamespacedName) { h.sessions.Store(session, true) }

// take reports whether there is a hint for a session, and removes it.
func (h *hints) take(session types.NamespacedName) bool {
	_, ok := h.sessions.LoadAndDelete(session)
	return ok
}
