// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"time"

	"k8s.io/utils/clock"
)

// deadlineBookmark is how long before its deadline a watch gets a bookmark, so that the next watch can
// begin there.
const deadlineBookmark = 2 * time.Second

// bookmarkTimer determines when a watch is due for a bookmark.
type bookmarkTimer struct {
	w     *watcher
	timer clock.Timer // nil for a watch without bookmarks
	due   bool
}

func newBookmarkTimer(w *watcher) *bookmarkTimer {
	b := &bookmarkTimer{w: w}
	if w.bookmarks || w.progress {
		b.timer = w.s.db.opts.Clock.NewTimer(b.next())
	}
	return b
}

func (b *bookmarkTimer) next() time.Duration {
	o := &b.w.s.db.opts
	wait := o.BookmarkInterval
	if b.w.progress {
		wait = o.ProgressInterval
	}
	if deadline, ok := b.w.ctx.Deadline(); ok {
		if left := deadline.Sub(o.Clock.Now()) - deadlineBookmark; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

func (b *bookmarkTimer) c() <-chan time.Time {
	if b.timer == nil {
		return nil
	}
	return b.timer.C()
}

// poll reports whether a bookmark is due.
func (b *bookmarkTimer) poll() bool {
	select {
	case <-b.c():
		b.due = true
	default:
	}
	return b.due
}

func (b *bookmarkTimer) reset() {
	b.due = false
	if b.timer == nil {
		return
	}
	if !b.timer.Stop() {
		select {
		case <-b.timer.C():
		default:
		}
	}
	b.timer.Reset(b.next())
}

func (b *bookmarkTimer) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
