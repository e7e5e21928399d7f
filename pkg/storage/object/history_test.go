// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/test/kit"
)

// listAt lists names and labels at an exact revision.
func listAt(s storage.Interface, rev uint64) (map[string]string, error) {
	out := &example.PodList{}
	err := s.GetList(context.Background(), "/pods/", storage.ListOptions{
		Recursive: true, Predicate: storage.Everything,
		ResourceVersion: fmt.Sprint(rev), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}, out)
	got := map[string]string{}
	for _, p := range out.Items {
		got[p.Name] = p.Labels["v"]
	}
	return got, err
}

// page lists n objects and returns how many it got and the token of the next page.
func page(s storage.Interface, n int64, token string) (int, string, error) {
	pred := storage.Everything
	pred.Limit, pred.Continue = n, token
	out := &example.PodList{}
	err := s.GetList(context.Background(), "/pods/", storage.ListOptions{Recursive: true, Predicate: pred}, out)
	return len(out.Items), out.Continue, err
}

// record makes a history in which keys are created, changed and deleted, and returns the state at every
// revision of it.
func record(t *testing.T, h harness) map[uint64]map[string]string {
	t.Helper()
	states := map[uint64]map[string]string{}
	now := map[string]string{}
	note := func() {
		state := map[string]string{}
		maps.Copy(state, now)
		states[h.db.Revision()] = state
	}
	note()
	for i := range 40 {
		name := fmt.Sprint(i % 7)
		switch _, live := now[name]; {
		case !live:
			create(t, h, name)
			now[name] = ""
		case i%3 == 0:
			remove(t, h, name)
			delete(now, name)
		default:
			setLabel(t, h, name, fmt.Sprint(i))
			now[name] = fmt.Sprint(i)
		}
		note()
	}
	return states
}

// TestEveryRevisionCanBeListed reads every state of a history: by rewinding in
// memory, by rewinding along the changelog, and after a restart.
func TestEveryRevisionCanBeListed(t *testing.T) {
	check := func(t *testing.T, h harness, states map[uint64]map[string]string) {
		for rev, want := range states {
			got, err := listAt(h, rev)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("state at %d: %v %s", rev, err, diff)
			}
		}
	}
	for _, ring := range []int{4, 1000} {
		t.Run(fmt.Sprintf("ring=%d", ring), func(t *testing.T) {
			dir := t.TempDir()
			in := func(s *setup) { s.engine.Dir, s.db.RingEvents = dir, ring }
			h := open(t, in)
			states := record(t, h)
			check(t, h, states)
			last := h.db.Revision()
			h.shut(t)

			h = open(t, in)
			if got := h.db.Revision(); got != last {
				t.Errorf("revision %d after a restart, want %d", got, last)
			}
			if st, err := h.Stats(context.Background()); err != nil || int(st.ObjectCount) != len(states[last]) {
				t.Errorf("stats %v after a restart, %v", st, err)
			}
			check(t, h, states)
			floor := last - 10
			if err := h.db.Compact(floor); err != nil {
				t.Fatal(err)
			}
			for rev, want := range states {
				got, err := listAt(h, rev)
				if rev < floor {
					if !apierrors.IsResourceExpired(err) {
						t.Errorf("list at compacted %d: %v", rev, err)
					}
				} else if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("state at %d after compaction: %v %s", rev, err, diff)
				}
			}
		})
	}
}

// TestExpiredInThreeShapes checks how each kind of request reports that its revision is compacted.
func TestExpiredInThreeShapes(t *testing.T) {
	h := open(t)
	for i := range 5 {
		create(t, h, fmt.Sprint(i))
	}
	old := h.db.Revision()
	n, token, err := page(h, 2, "")
	if err != nil || n != 2 || token == "" {
		t.Fatalf("first page: %d %q %v", n, token, err)
	}
	setLabel(t, h, "0", "new")
	remove(t, h, "4")
	if n, _, err := page(h, 2, token); err != nil || n != 2 {
		t.Errorf("second page before compaction: %d, %v", n, err)
	}
	if err := h.db.Compact(h.db.Revision()); err != nil {
		t.Fatal(err)
	}

	if _, err := listAt(h, old); !apierrors.IsResourceExpired(err) {
		t.Errorf("list: %v", err)
	}

	_, _, err = page(h, 2, token)
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.Status().Continue == "" {
		t.Fatalf("continue: %v", err)
	}
	if n, more, err := page(h, 10, status.Status().Continue); err != nil || n != 2 || more != "" {
		t.Errorf("going on with the token of the error: %d %q %v, want pods 2 and 3", n, more, err)
	}

	w := watchFrom(t, h, old)
	if ev := next(t, w); ev.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(ev.Object)) {
		t.Errorf("watch: %v", ev)
	}
	ended(t, w)

	// The compacted revision itself is still valid for all three.
	if got, err := listAt(h, h.db.CompactRevision()); err != nil || len(got) != 4 {
		t.Errorf("list at the compacted revision: %v %v", got, err)
	}
	w = watchFrom(t, h, h.db.CompactRevision())
	setLabel(t, h, "1", "x")
	if ev := next(t, w); ev.Type != watch.Modified {
		t.Errorf("watch from the compacted revision: %v", ev)
	}
}

// keysOf returns how many keys each keyspace holds.
func keysOf(t *testing.T, e engine.Engine) map[string]int {
	t.Helper()
	it, err := e.NewIter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	n := map[string]int{}
	for ok := it.First(); ok; ok = it.Next() {
		if !bytes.Equal(it.Key(), floorKey) && it.Key()[0] != 'm' {
			n[string(it.Key()[:1])]++
		}
	}
	return n
}

// TestCompactionLeavesOnlyWhatIsLive checks that only live data remains, even if the first compaction was interrupted.
func TestCompactionLeavesOnlyWhatIsLive(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		t.Run(fmt.Sprintf("interrupted=%v", interrupted), func(t *testing.T) {
			dir := t.TempDir()
			in := func(s *setup) { s.engine.Dir = dir }
			h := open(t, in)
			states := record(t, h)
			rev := h.db.Revision()
			want := map[string]int{"v": len(states[rev]), "k": len(states[rev])}
			if interrupted {
				if err := h.db.writeFloor(rev); err != nil {
					t.Fatal(err)
				}
				h.shut(t)
				h = open(t, in) // goes on by itself
				kit.Await(t, "the compaction is finished", func() bool { return keysOf(t, h.engine)["l"] == 0 })
			} else if err := h.db.Compact(rev); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, keysOf(t, h.engine)); diff != "" {
				t.Errorf("keys left: %s", diff)
			}
			if got, err := listAt(h, rev); err != nil || len(got) != len(states[rev]) {
				t.Errorf("list after compaction: %v, %v", got, err)
			}
			if err := h.db.Compact(rev + 1); err == nil {
				t.Error("compacted to the future")
			}
		})
	}
}

// TestCompactionByAge keeps what is younger than HistoryAge.
func TestCompactionByAge(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	h := open(t, func(s *setup) { s.db.Clock, s.db.HistoryAge = clock, 16*time.Minute })
	awaitWaiters(t, clock, 3)
	for i := range 30 {
		create(t, h, fmt.Sprint(i)) // revision i+2, in minute i
		clock.Step(time.Minute)
		// At minute i+1 what is of minute i-15, and so up to revision i-13, is 16 minutes old.
		if got, most := h.db.CompactRevision(), uint64(max(i-13, 0)); got > most {
			t.Fatalf("compacted to %d after %d minutes, at most %d is old enough", got, i+1, most)
		}
	}
	kit.Await(t, "all history is compacted", func() bool {
		clock.Step(time.Minute)
		return h.db.CompactRevision() == h.db.Revision()
	})
}

// TestCompactionByBytes bounds history however fast it is written.
func TestCompactionByBytes(t *testing.T) {
	h := open(t, func(s *setup) { s.db.HistoryBytes, s.db.RingBytes = 256<<10, 64<<10 })
	create(t, h, "a")
	value := bigValue(8 << 10)
	for i := range 200 {
		setLabel(t, h, "a", fmt.Sprint(i, value))
	}
	more := 0
	kit.Await(t, "history is compacted while it is written", func() bool {
		more++
		setLabel(t, h, "a", fmt.Sprint("more", more, value))
		return keysOf(t, h.engine)["v"] <= 64
	})
	h.topic.mu.RLock()
	defer h.topic.mu.RUnlock()
	if h.topic.ring.bytes > 64<<10 {
		t.Errorf("%d bytes in the ring", h.topic.ring.bytes)
	}
	if floor := h.db.CompactRevision(); h.topic.ring.before < floor {
		t.Errorf("the ring begins after %d, but history is compacted to %d", h.topic.ring.before, floor)
	}
}

// TestExpiry checks that expired objects are deleted, once, and renewed ones are not.
func TestExpiry(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	h := open(t, func(s *setup) { s.db.Clock = clock })
	ctx := testContext(t)
	awaitWaiters(t, clock, 3)
	for _, name := range []string{"short", "renewed", "long"} {
		ttl := map[string]uint64{"short": 10, "renewed": 10, "long": 1000}[name]
		if err := h.Create(ctx, podKey(name), pod(name), nil, ttl); err != nil {
			t.Fatal(err)
		}
	}
	setLabel(t, h, "renewed", "1") // without a time to live
	w := watchFrom(t, h, h.db.Revision())
	clock.Step(11 * time.Second)
	ev := next(t, w)
	if p := objectOf(t, ev); ev.Type != watch.Deleted || p.Name != "short" {
		t.Errorf("%s of %s", ev.Type, p.Name)
	}
	if got, err := listAt(h, h.db.Revision()); err != nil || len(got) != 2 {
		t.Errorf("left %v, %v", got, err)
	}
	kit.Await(t, "the expiry records of both are gone", func() bool { return keysOf(t, h.engine)["x"] <= 1 })
}

func TestKeysSortAsTheirObjects(t *testing.T) {
	var last []byte
	for _, key := range []string{"/a", "/a-b", "/a.b", "/a/b", "/a0"} {
		for _, rev := range []uint64{1 << 40, 300, 299, 1} {
			k := versionKey(nil, key, rev)
			if bytes.Compare(k, last) <= 0 {
				t.Errorf("%q at %d does not sort after the one before", key, rev)
			}
			last = k
		}
	}
	if bytes.Compare(changeKey(255), changeKey(256)) >= 0 || bytes.Compare(floorKey, changeKey(0)) >= 0 {
		t.Error("changes do not sort by revision")
	}
	v := binary.BigEndian.AppendUint64([]byte{opUpdate}, 7)
	if c, err := parseChange(changeKey(9), append(v, "/a"...)); err != nil || c != (change{9, opUpdate, 7, "/a"}) {
		t.Errorf("parsed %v, %v", c, err)
	}
	if _, err := parseChange(changeKey(9), v[:5]); !errors.Is(err, errRecord) {
		t.Errorf("short record: %v", err)
	}
	if got := upperBound([]byte{1, 255, 255}); !bytes.Equal(got, []byte{2}) {
		t.Errorf("upper bound %v", got)
	}
}

// TestWatchAheadOfTheStore: a client can have a revision that the store has not reached only from an earlier life of the store.
// Its watch is told to list again, and does not wait for that revision.
func TestWatchAheadOfTheStore(t *testing.T) {
	h := open(t)
	create(t, h, "a")
	now := h.db.Revision()
	w := watchFrom(t, h, now+1)
	ev := next(t, w)
	if err := apierrors.FromObject(ev.Object); ev.Type != watch.Error || !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), fmt.Sprintf("ahead of the store: %d, current: %d", now+1, now)) {
		t.Errorf("watch: %v %v", ev.Type, err)
	}
	ended(t, w)
	w = watchFrom(t, h, now)
	create(t, h, "b")
	if ev := next(t, w); ev.Type != watch.Added {
		t.Errorf("watch from the newest revision: %v", ev)
	}
}
