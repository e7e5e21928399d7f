// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/test/kit"
)

func watchFrom(t testing.TB, s storage.Interface, rev uint64, with ...func(*storage.ListOptions)) watch.Interface {
	t.Helper()
	opts := storage.ListOptions{ResourceVersion: fmt.Sprint(rev), Predicate: storage.Everything, Recursive: true}
	for _, f := range with {
		f(&opts)
	}
	w, err := s.Watch(testContext(t), "/pods/", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func bookmarked(o *storage.ListOptions) { o.Predicate.AllowWatchBookmarks = true }

func withInitialEvents(o *storage.ListOptions) {
	send := true
	o.SendInitialEvents, o.ResourceVersionMatch = &send, metav1.ResourceVersionMatchNotOlderThan
	bookmarked(o)
}

func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	select {
	case ev, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return ev
	case <-ctx.Done():
		t.Fatal("no event came")
		return watch.Event{}
	}
}

func ended(t testing.TB, w watch.Interface) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	select {
	case ev, ok := <-w.ResultChan():
		if ok {
			t.Errorf("%s after the watch should have ended", ev.Type)
		}
	case <-ctx.Done():
		t.Error("the watch did not end")
	}
}

// objectOf returns the pod of an event, shared or not.
func objectOf(t testing.TB, ev watch.Event) *example.Pod {
	t.Helper()
	obj := ev.Object
	if c, ok := obj.(apiruntime.CacheableObject); ok {
		obj = c.GetObject()
	}
	p, ok := obj.(*example.Pod)
	if !ok {
		t.Fatalf("%s event with %T: %v", ev.Type, obj, obj)
	}
	return p
}

// TestWatchDropsNothing checks that watches of every speed see every change exactly once and in order,
// served from memory and from disk.
func TestWatchDropsNothing(t *testing.T) {
	const writers, each, ring = 8, 120, 16
	h := open(t, func(s *setup) { s.db.RingEvents = ring })
	from := h.db.Revision()
	var wg sync.WaitGroup
	for n := range 6 {
		w := watchFrom(t, h, from)
		wg.Go(func() {
			rev := from
			for range writers * each {
				ev := next(t, w)
				if got := revisionOf(t, ev.Object); got != rev+1 {
					t.Errorf("watch %d: revision %d after %d", n, got, rev)
					return
				}
				rev++
				if n%2 == 1 && rev%50 == 0 { // waits until what comes next has left memory: neither its buffer nor the ring has room for it
					late := min(rev+2*(watchBuffer+ring), from+writers*each)
					kit.Await(t, "the writers go on", func() bool { return h.db.Revision() >= late })
				}
			}
		})
	}
	for n := range writers {
		wg.Go(func() {
			name := fmt.Sprint(n)
			for i := range each {
				switch i % 3 {
				case 0:
					create(t, h, name)
				case 1:
					setLabel(t, h, name, fmt.Sprint(i))
				case 2:
					remove(t, h, name)
				}
			}
		})
	}
	wg.Wait()
	if n := testutil.ToFloat64(h.db.metrics.replayed); n == 0 {
		t.Error("no event was read from disk")
	}
}

// TestWatchResumesExactly resumes at every revision of a history, with its events
// in memory and after a restart from disk.
func TestWatchResumesExactly(t *testing.T) {
	dir := t.TempDir()
	in := func(s *setup) { s.engine.Dir = dir }
	h := open(t, in)
	from := h.db.Revision()
	type change struct {
		typ watch.EventType
		rev uint64
		val string
	}
	var want []change
	add := func(typ watch.EventType, p *example.Pod) {
		want = append(want, change{typ, revisionOf(t, p), p.Labels["v"]})
	}
	for i := range 10 {
		name := fmt.Sprint(i % 4)
		if i >= 4 {
			add(watch.Deleted, remove(t, h, name))
			if _, err := h.engine.Bump(1); err != nil { // another resource's write
				t.Fatal(err)
			}
		}
		add(watch.Added, create(t, h, name))
		add(watch.Modified, setLabel(t, h, name, fmt.Sprint(i)))
	}
	check := func(t *testing.T, h harness) {
		for rev := from; rev <= want[len(want)-1].rev; rev++ {
			w := watchFrom(t, h, rev)
			for _, c := range want {
				if c.rev <= rev {
					continue
				}
				ev := next(t, w)
				p := objectOf(t, ev)
				if got := (change{ev.Type, revisionOf(t, p), p.Labels["v"]}); got != c {
					t.Fatalf("from %d: got %v, want %v", rev, got, c)
				}
			}
			w.Stop()
		}
	}
	t.Run("memory", func(t *testing.T) { check(t, h) })
	h.shut(t)
	h = open(t, in)
	t.Run("disk", func(t *testing.T) { check(t, h) })
}

// TestInitialEventsEndOnce watches a store of n objects under load. A watch must get each object once, then
// one bookmark, then all later changes, without gap or repetition.
func TestInitialEventsEndOnce(t *testing.T) {
	for _, objects := range []int64{-1, 1 << 20} {
		h := open(t, func(s *setup) { s.db.ObjectCacheBytes = objects })
		for i := range 20 {
			create(t, h, fmt.Sprint(i))
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					setLabel(t, h, fmt.Sprint(i%20), fmt.Sprint(i))
				}
			}
		}()
		for range 10 {
			w := watchFrom(t, h, 0, withInitialEvents)
			seen := map[string]bool{}
			var snapshot, end uint64
			for after := 0; after < 30; {
				ev := next(t, w)
				rev := revisionOf(t, ev.Object)
				switch {
				case ev.Type == watch.Bookmark:
					marked, err := storage.HasInitialEventsEndBookmarkAnnotation(ev.Object)
					if err != nil || !marked {
						t.Fatalf("bookmark without annotation at %d: %v", rev, err)
					}
					if end != 0 {
						t.Fatal("a second initial-events-end")
					}
					if end = rev; end < snapshot || len(seen) != 20 {
						t.Fatalf("end at %d after %d objects up to %d", end, len(seen), snapshot)
					}
				case end == 0:
					p := objectOf(t, ev)
					if ev.Type != watch.Added || seen[p.Name] {
						t.Fatalf("initial %s of %s", ev.Type, p.Name)
					}
					seen[p.Name], snapshot = true, max(snapshot, rev)
				default:
					if after++; ev.Type != watch.Modified || rev != end+uint64(after) {
						t.Fatalf("%s at %d, event %d after the end at %d", ev.Type, rev, after, end)
					}
				}
			}
			w.Stop()
		}
		close(stop)
		<-stopped
	}
}

// TestDeletedEventIsWhole checks that DELETED carries the complete last object, with the revision of the
// delete or of the change after which it no longer matched.
func TestDeletedEventIsWhole(t *testing.T) {
	h := open(t)
	from := h.db.Revision()
	create(t, h, "a")
	last := setLabel(t, h, "a", "1")
	all := watchFrom(t, h, revisionOf(t, last))
	selected := watchFrom(t, h, from, func(o *storage.ListOptions) {
		o.Predicate = storage.SelectionPredicate{Label: labels.SelectorFromSet(labels.Set{"v": "1"}), Field: fields.Everything(), GetAttrs: podAttrs}
	})
	if ev := next(t, selected); ev.Type != watch.Added || revisionOf(t, ev.Object) != revisionOf(t, last) {
		t.Errorf("entering the selection is %s at %d", ev.Type, revisionOf(t, ev.Object))
	}
	left := setLabel(t, h, "a", "2")
	ev := next(t, selected)
	if p := objectOf(t, ev); ev.Type != watch.Deleted || p.Labels["v"] != "1" || p.ResourceVersion != left.ResourceVersion {
		t.Errorf("leaving the selection is %s of %v at %s, want the old object at %s", ev.Type, p.Labels, p.ResourceVersion, left.ResourceVersion)
	}
	gone := remove(t, h, "a")
	next(t, all)
	ev = next(t, all)
	if p := objectOf(t, ev); ev.Type != watch.Deleted || p.Labels["v"] != "2" || p.ResourceVersion != gone.ResourceVersion || revisionOf(t, p) != revisionOf(t, left)+1 {
		t.Errorf("delete is %s of %v at %s", ev.Type, p.Labels, p.ResourceVersion)
	}
}

// TestSlowWatchIsCut leaves a watch unread while history advances. It must get the events that it had
// already taken, then 410, and nothing after that. Writers must not be held up.
func TestSlowWatchIsCut(t *testing.T) {
	h := open(t, func(s *setup) { s.db.RingEvents = 8 })
	create(t, h, "a")
	from := h.db.Revision()
	w := watchFrom(t, h, from)
	const writes = 3 * watchBuffer
	for i := range writes {
		setLabel(t, h, "a", fmt.Sprint(i))
	}
	kit.Await(t, "the watch fills its buffer", func() bool { return len(w.ResultChan()) == watchBuffer })
	if err := h.db.Compact(h.db.Revision()); err != nil {
		t.Fatal(err)
	}
	for rev := from; ; rev++ {
		ev := next(t, w)
		if ev.Type == watch.Error {
			err := apierrors.FromObject(ev.Object)
			if !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "history starts at") {
				t.Errorf("cut with %v", err)
			}
			if rev < from+watchBuffer || rev >= from+writes {
				t.Errorf("cut after revision %d of %d..%d", rev, from, from+writes)
			}
			break
		}
		if got := revisionOf(t, ev.Object); got != rev+1 {
			t.Fatalf("revision %d after %d", got, rev)
		}
	}
	ended(t, w)
}

// TestIdleWatchSurvivesCompaction checks that compaction does not end a watch that is up to date, however
// old its last event is.
func TestIdleWatchSurvivesCompaction(t *testing.T) {
	h := open(t)
	create(t, h, "a")
	w := watchFrom(t, h, 1)
	next(t, w)
	if _, err := h.engine.Bump(100); err != nil {
		t.Fatal(err)
	}
	if err := h.db.Compact(h.db.Revision()); err != nil {
		t.Fatal(err)
	}
	p := setLabel(t, h, "a", "1")
	if ev := next(t, w); ev.Type != watch.Modified || revisionOf(t, ev.Object) != revisionOf(t, p) {
		t.Errorf("%s at %d", ev.Type, revisionOf(t, ev.Object))
	}
}

// TestClientBookmarks checks that bookmarks come once a minute, and before the deadline.
func TestClientBookmarks(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now().Add(time.Hour)) // so that the context below does not end by itself
	h := open(t, func(s *setup) { s.db.Clock = clock })
	plain := watchFrom(t, h, 1)
	waiters := awaitWaiters(t, clock, 3) // the sweeper, the compactor and the idler
	w := watchFrom(t, h, 1, bookmarked)
	awaitWaiters(t, clock, waiters+1)
	for want := uint64(2); want < 5; want++ {
		if _, err := h.engine.Bump(1); err != nil {
			t.Fatal(err)
		}
		clock.Step(time.Minute)
		ev := next(t, w)
		if got := revisionOf(t, ev.Object); ev.Type != watch.Bookmark || got != want {
			t.Errorf("%s at %d, want a bookmark at %d", ev.Type, got, want)
		}
	}
	// The deadline is an hour away on the real clock, and 10 s on the watch's: the
	// next bookmark is due in 8 s.
	ctx, cancel := context.WithDeadline(context.Background(), clock.Now().Add(10*time.Second))
	defer cancel()
	waiters = clock.Waiters()
	short, err := h.Watch(ctx, "/pods/", storage.ListOptions{ResourceVersion: "1", Recursive: true, Predicate: storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.Everything(), AllowWatchBookmarks: true,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer short.Stop()
	awaitWaiters(t, clock, waiters+1)
	clock.Step(8 * time.Second)
	if ev := next(t, short); ev.Type != watch.Bookmark {
		t.Errorf("%s before the deadline", ev.Type)
	}
	select {
	case ev := <-plain.ResultChan():
		t.Errorf("%s for a watch that allows no bookmarks", ev.Type)
	default:
	}
}

// TestProgressBookmarks checks that the watch of a watch cache gets bookmarks at the shorter interval that it asks for.
func TestProgressBookmarks(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	h := open(t, func(s *setup) { s.db.Clock, s.db.ProgressInterval = clock, 3*time.Second })
	waiters := awaitWaiters(t, clock, 3) // the sweeper, the compactor and the idler
	w := watchFrom(t, h, 1, func(o *storage.ListOptions) { o.ProgressNotify = true })
	awaitWaiters(t, clock, waiters+1)
	for want := uint64(2); want < 5; want++ {
		if _, err := h.engine.Bump(1); err != nil {
			t.Fatal(err)
		}
		clock.Step(3 * time.Second)
		ev := next(t, w)
		if got := revisionOf(t, ev.Object); ev.Type != watch.Bookmark || got != want {
			t.Errorf("%s at %d, want a bookmark at %d", ev.Type, got, want)
		}
	}
}

// awaitWaiters waits until n goroutines wait for the clock.
func awaitWaiters(t *testing.T, clock *clocktesting.FakeClock, n int) int {
	t.Helper()
	kit.Await(t, fmt.Sprintf("%d goroutines wait for the clock", n), func() bool { return clock.Waiters() >= n })
	return clock.Waiters()
}

// TestNarrowWatchSleeps runs watches of one object and of one namespace in a store that is busy elsewhere.
// They must neither miss a change that concerns them nor search history.
func TestNarrowWatchSleeps(t *testing.T) {
	h := open(t, func(s *setup) { s.db.RingEvents = 2048 })
	create(t, h, "mine")
	from := h.db.Revision()
	var watches []watch.Interface
	for _, key := range []string{podKey("mine"), "/pods/ns"} {
		opts := storage.ListOptions{ResourceVersion: fmt.Sprint(from), Predicate: storage.Everything, Recursive: key == "/pods/ns"}
		w, err := h.Watch(testContext(t), key, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		watches = append(watches, w)
	}
	for round := range 6 { // of which each fits into the ring, and all do not
		awaitSleep(t, h, len(watches))
		var wg sync.WaitGroup
		for n := range 16 {
			wg.Go(func() {
				for i := range 50 {
					name := fmt.Sprintf("%d-%d-%d", round, n, i)
					if err := h.Create(context.Background(), "/pods/other/"+name, pod(name), nil, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	mine := setLabel(t, h, "mine", "1")
	for _, w := range watches {
		if ev := next(t, w); ev.Type != watch.Modified || revisionOf(t, ev.Object) != revisionOf(t, mine) {
			t.Errorf("%s at %d, want the change at %s", ev.Type, revisionOf(t, ev.Object), mine.ResourceVersion)
		}
		w.Stop()
	}
	if n := testutil.ToFloat64(h.db.metrics.replayed); n != 0 {
		t.Errorf("%v events were read from disk", n)
	}
	kit.Await(t, "no scope is left without watches", func() bool {
		h.topic.scopes.mu.RLock()
		defer h.topic.scopes.mu.RUnlock()
		return len(h.topic.scopes.narrow) == 0
	})
}

// awaitSleep waits until n narrow watches, each alone in its scope, have handled their wake-ups.
func awaitSleep(t *testing.T, h harness, n int) {
	t.Helper()
	kit.Await(t, fmt.Sprintf("%d watches sleep", n), func() bool {
		asleep := 0
		h.topic.scopes.mu.RLock()
		for _, sc := range h.topic.scopes.narrow {
			sc.mu.Lock()
			if sc.notify != nil && sc.waiting.Load() == 1 {
				asleep++
			}
			sc.mu.Unlock()
		}
		h.topic.scopes.mu.RUnlock()
		return asleep == n
	})
}
