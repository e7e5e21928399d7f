// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// locks has a lock for each tree in which something is being created or cancelled; no tree waits for another. Several
// creations may hold the lock of a tree, or one cancellation. A cancellation that waits comes before later creations. Whoever waits
// may give up.
type locks struct {
	mu    sync.Mutex
	trees map[types.UID]*treeLock // that somebody holds or waits for
}

// treeLock is the lock of one tree. The mutex of its owner guards it.
type treeLock struct {
	users      int // that hold it or wait for it
	creations  int // that hold it
	cancelled  bool
	cancelling int           // cancellations that wait
	changed    chan struct{} // closed when others may take the lock
}

func (l *treeLock) free(alone bool) bool {
	if alone {
		return !l.cancelled && l.creations == 0
	}
	return !l.cancelled && l.cancelling == 0
}

// wake makes those that wait look again.
func (l *treeLock) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// lock locks a tree, for a cancellation alone. The error is an API error, after the end of ctx.
func (t *locks) lock(ctx context.Context, root types.UID, alone bool) (unlock func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.trees[root]
	if l == nil {
		if t.trees == nil {
			t.trees = map[types.UID]*treeLock{}
		}
		l = &treeLock{changed: make(chan struct{})}
		t.trees[root] = l
	}
	l.users++
	if alone {
		l.cancelling++
	}
	for !l.free(alone) && ctx.Err() == nil {
		changed := l.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		t.mu.Lock()
	}
	if alone {
		l.cancelling--
	}
	switch {
	case !l.free(alone):
		t.leave(root, l)
		return nil, apierrors.NewServiceUnavailable("the tree of the task is being changed; try again")
	case alone:
		l.cancelled = true
	default:
		l.creations++
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if alone {
			l.cancelled = false
		} else {
			l.creations--
		}
		t.leave(root, l)
	}, nil
}

// leave ends a use of a lock. The caller holds mu.
func (t *locks) leave(root types.UID, l *treeLock) {
	if l.users--; l.users == 0 {
		delete(t.trees, root)
		return
	}
	l.wake()
}
