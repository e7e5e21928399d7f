// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// WatchOptions configure how a watch begins and what it sends besides changes.
type WatchOptions struct {
	// SendInitialEvents sends the current state as ADDED events before changes, followed by a bookmark if
	// AllowBookmarks is set. If it is nil, the state is sent only when the watch starts at revision 0.
	SendInitialEvents *bool
	// AllowBookmarks sends a bookmark from time to time, so that a watch that sees
	// few changes can be resumed at a new revision.
	AllowBookmarks bool
}

const (
	// watchBuffer is how many events a watch keeps ready for its reader. After a watch is stopped, those
	// events can still be read.
	watchBuffer = 100
	// watchChunk is how many events are read at a time.
	watchChunk = 256
)

// Watch sends every change after revision from to the events that q selects, in revision order. It sends
// ADDED when an event was appended. It sends DELETED, with the last object under the revision of its
// deletion, when an event was deleted or trimmed. Events never change. If a watch cannot go on, it sends
// one ERROR event and ends: Expired (410) below the floor, and for a revision that the store has not reached; Timeout (504)
// for such a revision with initial events; and TooManyRequests (429) when the reader has more than MaxWatchLag unread events.
// Clients respond to 410 by listing again, and to 429 by resuming. A reader never slows a writer.
//
// A revision that the store has not reached is one of an earlier life of the store. Waiting for it would leave out
// everything up to there.
//
// The watch ends with ctx, Stop or Close. Revision, Limit and Continue of q are not used.
func (r *Reader) Watch(ctx context.Context, q Query, from uint64, o WatchOptions) (watch.Interface, error) {
	f, err := newFilter(&q)
	if err != nil {
		return nil, fmt.Errorf("watch events: %w", err)
	}
	w := &watcher{reader: r, opts: o, result: make(chan watch.Event, watchBuffer)}
	w.initial = from == 0
	if o.SendInitialEvents != nil {
		w.initial = *o.SendInitialEvents
	}
	w.from = from
	ctx, w.cancel = context.WithCancel(ctx)
	if !r.watches.enter(w) {
		w.cancel()
		return nil, fmt.Errorf("watch events: %w", ErrShutdown)
	}
	start := from
	if w.initial {
		start = 0
	}
	w.follower = follow(r.shared, f, start)
	var tick clock.Ticker
	if o.AllowBookmarks {
		tick = r.opts.Clock.NewTicker(r.opts.BookmarkInterval)
	}
	go func() { // ends with ctx, Stop or Close
		defer r.watches.leave(w)
		w.run(ctx, tick)
	}()
	return w, nil
}

// watches keeps the open watches so that Close can end them.
type watches struct {
	stopping chan struct{} // closed by close

	mu     sync.Mutex
	open   map[*watcher]struct{}
	closed bool
	ending sync.WaitGroup
}

func newWatches() *watches {
	return &watches{stopping: make(chan struct{}), open: map[*watcher]struct{}{}}
}

// enter registers a watch, unless the log is closed.
func (o *watches) enter(w *watcher) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.open[w] = struct{}{}
	o.ending.Add(1)
	return true
}

func (o *watches) leave(w *watcher) {
	o.mu.Lock()
	delete(o.open, w)
	o.mu.Unlock()
	o.ending.Done()
}

// close ends all watches and waits for them.
func (o *watches) close() {
	o.mu.Lock()
	o.closed = true
	for w := range o.open {
		w.Stop()
	}
	o.mu.Unlock()
	close(o.stopping)
	o.ending.Wait()
}

// watcher is one watch: a goroutine that moves changes from a follower to a channel.
type watcher struct {
	reader   *Reader
	opts     WatchOptions
	initial  bool
	from     uint64
	follower *follower
	result   chan watch.Event
	cancel   context.CancelFunc
	once     sync.Once
}

var _ watch.Interface = (*watcher)(nil)

// Stop ends the watch. The channel is closed soon after.
func (w *watcher) Stop() { w.once.Do(w.cancel) }

// ResultChan returns the channel on which events are sent.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context, bookmarks clock.Ticker) {
	defer close(w.result)
	defer w.follower.stop()
	defer w.cancel()
	var tick <-chan time.Time
	if bookmarks != nil {
		defer bookmarks.Stop()
		tick = bookmarks.C()
	}
	err := w.start(ctx)
	if err == nil {
		err = w.changes(ctx, tick)
	}
	if ctx.Err() == nil && err != nil {
		w.put(ctx, watch.Event{Type: watch.Error, Object: status(err)}, nil)
	}
}

// start sends the initial state, if requested.
func (w *watcher) start(ctx context.Context) error {
	if !w.initial {
		if rev := w.reader.Revision(); w.from > rev {
			return &aheadError{FutureError{w.from, rev}}
		}
		return nil
	}
	rev := w.follower.pos
	if w.from > rev {
		return &FutureError{w.from, rev}
	}
	from := place{}
	for {
		p, err := w.reader.page(ctx, w.follower.filter, rev, from, bounds{items: watchChunk})
		if err != nil {
			return err
		}
		for _, e := range p.items {
			if err := w.send(ctx, watch.Added, e); err != nil {
				return err
			}
		}
		if p.next == nil {
			break
		}
		from = *p.next
	}
	if w.opts.AllowBookmarks && w.opts.SendInitialEvents != nil {
		b := bookmark(rev)
		b.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		return w.send(ctx, watch.Bookmark, b)
	}
	return nil
}

// changes sends changes until the watch ends.
func (w *watcher) changes(ctx context.Context, tick <-chan time.Time) error {
	for {
		list, err := w.follower.next(ctx, watchChunk)
		if err != nil {
			return err
		}
		for _, c := range list {
			t := watch.Added
			if c.deleted {
				t = watch.Deleted
			}
			if err := w.send(ctx, t, c.event); err != nil {
				return err
			}
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.follower.sub.wake:
		case <-tick:
			if rev := w.follower.progress(); rev > 0 {
				if err := w.send(ctx, watch.Bookmark, bookmark(rev)); err != nil {
					return err
				}
			}
		}
	}
}

// send waits until the reader takes the event. It fails if the reader lags too far behind.
func (w *watcher) send(ctx context.Context, t watch.EventType, e *v1alpha1.ExecutionEvent) error {
	if !w.put(ctx, watch.Event{Type: t, Object: e}, w.follower.sub.cut) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrLagging
	}
	return nil
}

func (w *watcher) put(ctx context.Context, e watch.Event, cut <-chan struct{}) bool {
	select {
	case <-cut:
		return false
	default:
	}
	select {
	case w.result <- e:
		return true
	case <-ctx.Done():
	case <-cut:
	}
	return false
}

func bookmark(rev uint64) *v1alpha1.ExecutionEvent {
	return &v1alpha1.ExecutionEvent{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(rev, 10)}}
}

// status returns the object of an ERROR event. It is made here and not in the API layer because a watch
// carries it in its wire form.
func status(err error) *metav1.Status {
	var s *apierrors.StatusError
	var future *FutureError
	var ahead *aheadError
	switch {
	case errors.As(err, &ahead):
		s = apierrors.NewResourceExpired(ahead.Error() + "; list again and watch from there")
	case errors.Is(err, ErrExpired):
		s = apierrors.NewResourceExpired("too old resource version: " + err.Error())
	case errors.As(err, &future):
		s = apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", future.Revision, future.Current), 1)
		s.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
		}}
	case errors.Is(err, ErrLagging):
		s = apierrors.NewTooManyRequests("the watch fell too far behind; resume it from the last resourceVersion received", 1)
	default:
		s = apierrors.NewInternalError(err)
		s.ErrStatus.Code = http.StatusInternalServerError
	}
	return &s.ErrStatus
}
