// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"strings"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
)

// watchBuffer is how many events a watch keeps ready for its reader.
const watchBuffer = 100

// watcher is a cursor over a topic's events. Its goroutine ends when the caller stops it, when its context
// or its store ends, or after an error.
type watcher struct {
	s         *Store
	t         *topic
	key       string
	recursive bool
	pred      storage.SelectionPredicate
	all       bool // no selector
	bookmarks bool // of a client
	progress  bool // set for a watch cache: bookmarks are more frequent, and its objects are not shared
	rev       uint64
	ctx       context.Context //nolint:containedctx // a watch is a request that continues after its call
	cancel    context.CancelFunc
	wakeups   *wakeups // of its scope
	result    chan watch.Event
}

var _ watch.Interface = (*watcher)(nil)

// Stop ends the watch; its channel is closed soon after.
func (w *watcher) Stop() { w.cancel() }

// ResultChan delivers events until the watch ends.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// start describes how a watch begins.
type start struct {
	initial  bool   // deliver the current state first
	bookmark bool   // send a bookmark after the initial state
	minimum  uint64 // fail if the state is older
}

// Watch delivers the changes after a revision of the object at key, or of all objects below key.
func (s *Store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	k, err := s.key(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	rev, err := versioner.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		s: s, t: s.topic, key: k, recursive: opts.Recursive, pred: opts.Predicate, all: opts.Predicate.Empty(),
		bookmarks: opts.Predicate.AllowWatchBookmarks, progress: opts.ProgressNotify,
		rev: rev, result: make(chan watch.Event, watchBuffer),
	}
	var from start
	if send := opts.SendInitialEvents; send != nil {
		from = start{initial: *send, bookmark: *send && opts.Predicate.AllowWatchBookmarks, minimum: rev}
	} else {
		from.initial = rev == 0
	}
	if !from.initial && rev == 0 {
		w.rev = s.db.Revision()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	unlink := context.AfterFunc(s.ctx, w.cancel) //nolint:contextcheck // the watch ends with its store too
	s.watches.Add(1)
	s.topic.metrics.watches.Inc()
	w.wakeups = s.topic.scopes.join(k, s.topic.prefix)
	go func() {
		defer s.topic.scopes.leave(k, s.topic.prefix)
		defer s.watches.Done()
		defer s.topic.metrics.watches.Dec()
		defer unlink()
		w.run(from)
	}()
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

func (w *watcher) run(from start) {
	defer close(w.result)
	defer w.cancel()
	err := w.deliver(from)
	if err == nil || w.ctx.Err() != nil {
		return
	}
	if errors.Is(err, ErrCompacted) {
		w.t.metrics.cut.Inc()
	}
	select {
	case w.result <- watchError(err, w.rev, w.s.db.CompactRevision()):
	case <-w.ctx.Done():
	}
}

func (w *watcher) deliver(from start) error {
	if from.initial {
		snap, rev := w.t.current()
		if from.minimum > rev {
			return storage.NewTooLargeResourceVersionError(from.minimum, rev, 1)
		}
		w.rev = rev
		if err := w.initial(snap.tree); err != nil {
			return err
		}
	} else if now := w.s.db.Revision(); w.rev > now {
		return aheadError(w.rev, now)
	} else if w.rev < w.s.db.CompactRevision() {
		return ErrCompacted
	}
	if from.bookmark {
		if err := w.bookmark(true); err != nil {
			return err
		}
	}
	for {
		pos, inRing := w.t.seek(w.rev)
		var err error
		if inRing {
			err = w.follow(pos)
		} else {
			err = w.catchUp()
		}
		if err != nil {
			return err
		}
	}
}

// catchUp delivers a piece of history from disk.
func (w *watcher) catchUp() error {
	events, upTo, err := w.t.replay(w.rev)
	if err != nil {
		return err
	}
	if err := w.send(events); err != nil {
		return err
	}
	w.rev = max(w.rev, upTo)
	return w.ctx.Err()
}

// follow delivers events from the ring. It returns nil when the watch fell behind the ring.
func (w *watcher) follow(pos uint64) error {
	n, progress := w.wakeups, &w.t.scopes.progress
	timer := newBookmarkTimer(w)
	defer timer.stop()
	asked := progress.Load()
	var events []*event
	for {
		changed := n.changed()
		upTo := w.s.db.Revision() // before reading the ring, so that everything up to here is in it
		var inRing bool
		if events, pos, inRing = w.t.readRing(pos, events[:0]); !inRing {
			return nil
		}
		if len(events) > 0 {
			if err := w.send(events); err != nil {
				return err
			}
			clear(events)
		} else {
			w.rev = max(w.rev, upTo)
		}
		due := timer.poll()
		if now := progress.Load(); w.progress && now != asked && len(events) == 0 {
			asked, due = now, true
		}
		if due {
			timer.reset()
			if err := w.bookmark(false); err != nil {
				return err
			}
		}
		if len(events) > 0 {
			continue
		}
		n.waiting.Add(1)
		select {
		case <-changed:
		case <-timer.c():
			timer.due = true
		case <-w.ctx.Done():
		}
		n.waiting.Add(-1)
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
}

// Bounds of how much a watch reads ahead of its client while it delivers an initial state.
const (
	initialAtOnce = 128
	initialBytes  = 1 << 20
)

// initial delivers the state of a tree in pieces. While the client is slow to take one, no iterator is open
// that would keep old files on disk.
func (w *watcher) initial(tree *btree.BTreeG[*entry]) error {
	for from := w.key; from != ""; {
		var (
			events []watch.Event
			err    error
		)
		if events, from, err = w.piece(tree, from); err != nil {
			return err
		}
		for _, ev := range events {
			if err := w.emit(ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// piece reads the events of some keys at or after from. next is the key to continue with. A watch that selects by an indexed field reads the
// objects with its value alone: there may be millions of others.
func (w *watcher) piece(tree *btree.BTreeG[*entry], from string) (events []watch.Event, next string, err error) {
	r := valueReader{t: w.t}
	defer func() {
		if closed := r.close(); err == nil {
			err = closed
		}
	}()
	bytes := 0
	visit := func(en *entry) bool {
		if !w.matches(en.key) {
			return false
		}
		if len(events) == initialAtOnce || bytes > initialBytes {
			next = en.key
			return false
		}
		bytes += int(en.size)
		var (
			obj    runtime.Object
			shared bool
		)
		if obj, shared, err = w.s.object(w.ctx, en, &r); err != nil {
			return false
		}
		if ok, matchErr := w.pred.Matches(obj); !w.all && (matchErr != nil || !ok) {
			return true
		}
		if shared {
			events = append(events, w.event(watch.Added, &sharedObject{obj: obj}))
		} else {
			events = append(events, watch.Event{Type: watch.Added, Object: obj})
		}
		return true
	}
	if field, value, ok := w.s.byField(&w.pred); ok && w.recursive {
		walked := span{w.s, tree, w.rev, from, string(upperBound([]byte(w.key)))}.walkField(field, value, visit)
		return events, next, errors.Join(walked, err)
	}
	tree.AscendGreaterOrEqual(&entry{key: from}, visit)
	return events, next, err
}

func (w *watcher) matches(key string) bool {
	if w.recursive {
		return strings.HasPrefix(key, w.key)
	}
	return key == w.key
}

func (w *watcher) bookmark(endOfInitial bool) error {
	obj := w.s.newFunc()
	if err := versioner.UpdateObject(obj, w.rev); err != nil {
		return err
	}
	if endOfInitial {
		if err := storage.AnnotateInitialEventsEndBookmark(obj); err != nil {
			return err
		}
	}
	return w.emit(watch.Event{Type: watch.Bookmark, Object: obj})
}

// emit waits until the reader takes the event. It holds no lock meanwhile.
func (w *watcher) emit(ev watch.Event) error {
	select {
	case w.result <- ev:
		return nil
	default:
	}
	select {
	case w.result <- ev:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// send delivers the events that concern this watch, as its selector sees them.
func (w *watcher) send(events []*event) error {
	for _, ev := range events {
		if ev.rev <= w.rev {
			continue // the watch began after it
		}
		if w.matches(ev.cur.key) {
			out, err := w.convert(ev)
			if err != nil {
				return err
			}
			if out.Type != "" {
				if err := w.emit(out); err != nil {
					return err
				}
			}
		}
		w.rev = ev.rev
	}
	return nil
}

// convert turns a change into the watch's event. An object that starts to match the selector is ADDED. One
// that no longer matches is DELETED, with the object as it last matched.
func (w *watcher) convert(ev *event) (watch.Event, error) {
	var (
		was, is  bool
		cur, old *sharedObject
		err      error
	)
	if ev.op != opDelete {
		if cur, err = ev.current(w.t); err != nil {
			return watch.Event{}, err
		}
		is = w.all || cur.matches(&w.pred)
	}
	switch {
	case ev.op == opDelete || ev.op == opUpdate && !w.all:
		if old, err = ev.previous(w.t); err != nil {
			return watch.Event{}, err
		}
		was = w.all || old.matches(&w.pred)
	case ev.op == opUpdate:
		was = true
	}
	switch {
	case is && was:
		return w.event(watch.Modified, cur), nil
	case is:
		return w.event(watch.Added, cur), nil
	case was:
		return w.event(watch.Deleted, old), nil
	}
	return watch.Event{}, nil
}

func (w *watcher) event(typ watch.EventType, obj *sharedObject) watch.Event {
	if w.progress { // a watch cache asserts the type
		return watch.Event{Type: typ, Object: obj.GetObject()}
	}
	return watch.Event{Type: typ, Object: obj}
}
