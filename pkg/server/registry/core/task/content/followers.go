// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// followers wake those who follow the logs of tasks: when something was added to a log, and when its task has ended or is gone. It
// knows only tasks whose logs are followed. Everything that it tells was stored before, by this process, which is the only one that
// writes; so a follower that looks at the store after each waking misses nothing, and need not look in between.
type followers struct {
	mu    sync.Mutex
	tasks map[types.UID]*followed
}

// followed is a task whose log is followed. The mutex of its owner guards it.
type followed struct {
	users   int
	over    bool
	changed chan struct{} // closed with the next change
}

// follow returns a func that reports whether the task is over, and what is closed with the next change; it is called before each
// look at the store. What changed before follow was called is not reported.
func (f *followers) follow(uid types.UID) (next func() (over bool, changed <-chan struct{}), leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tasks[uid]
	if t == nil {
		if f.tasks == nil {
			f.tasks = map[types.UID]*followed{}
		}
		t = &followed{changed: make(chan struct{})}
		f.tasks[uid] = t
	}
	t.users++
	next = func() (bool, <-chan struct{}) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return t.over, t.changed
	}
	return next, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(f.tasks, uid)
		}
	}
}

// wake wakes the followers of a task's log. over says that nothing more will be written.
func (f *followers) wake(uid types.UID, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tasks[uid]
	if t == nil {
		return
	}
	t.over = t.over || over
	close(t.changed)
	t.changed = make(chan struct{})
}
