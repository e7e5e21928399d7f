// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/worker/client"
)

func status(code int) error {
	return apierrors.NewGenericServerResponse(code, "post", schema.GroupResource{Resource: "tasks"}, "t", "", 0, false)
}

// server is the other end of an outbox: it accepts batches, and fails as configured.
type server struct {
	mu sync.Mutex
	// fail decides about a batch before it is stored; after may fail although it was.
	fail, after func(batch []string) error
	got         []string
	seen        map[string]bool
	requests    int
}

func (s *server) send(_ context.Context, batch []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if s.fail != nil {
		if err := s.fail(batch); err != nil {
			return err
		}
	}
	for _, item := range batch {
		// What the store does with a de-duplication key.
		if !s.seen[item] {
			s.seen[item] = true
			s.got = append(s.got, item)
		}
	}
	if s.after != nil {
		return s.after(batch)
	}
	return nil
}

func newOutbox(t *testing.T, s *server, c clock.Clock) *outbox[string] {
	t.Helper()
	s.seen = map[string]bool{}
	o := &outbox[string]{name: "test", send: s.send, size: func(x string) int { return len(x) }, clock: c}
	o.start(t.Context())
	return o
}

// TestOutboxKeepsOrder fails requests at random, before and after they are
// stored: everything arrives once and in order.
func TestOutboxKeepsOrder(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		flaky := func([]string) error {
			switch r.IntN(4) {
			case 0:
				return errors.New("connection refused")
			case 1:
				return status(http.StatusServiceUnavailable)
			default:
				return nil
			}
		}
		s := &server{fail: flaky, after: flaky}
		o := newOutbox(t, s, &noWait{})
		var want []string
		for i := range 300 {
			want = append(want, fmt.Sprint("item ", i))
			o.add(want[i])
		}
		lost := o.close(time.Hour)
		if lost != 0 || strings.Join(s.got, ",") != strings.Join(want, ",") {
			t.Fatalf("seed %d: lost %d, got %d of %d", seed, lost, len(s.got), len(want))
		}
	}
}

// noWait is a clock whose short timers fire at once and whose long ones never do.
type noWait struct{ clock.RealClock }

func (c *noWait) NewTimer(d time.Duration) clock.Timer {
	if d < time.Minute {
		d = 0
	}
	return c.RealClock.NewTimer(d)
}

func TestOutboxBatches(t *testing.T) {
	s := &server{}
	release := make(chan struct{})
	var sizes []int
	s.fail = func(batch []string) error {
		sizes = append(sizes, len(batch))
		if len(sizes) == 1 {
			<-release
		}
		return nil
	}
	o := newOutbox(t, s, &noWait{})
	o.add("first")
	// The others gather while the first request is under way, or go with it.
	for i := range 1000 {
		o.add(strconv.Itoa(i))
	}
	close(release)
	if lost := o.close(time.Hour); lost != 0 || len(s.got) != 1001 || len(sizes) > 4 || slices.Max(sizes) > maxBatchItems {
		t.Errorf("lost %d, got %d in batches of %v", lost, len(s.got), sizes)
	}
}

// TestOutboxDropsOnlyWhatIsUnfit: one bad item does not take others with it.
func TestOutboxDropsOnlyWhatIsUnfit(t *testing.T) {
	s := &server{fail: func(batch []string) error {
		if slices.Contains(batch, "bad") {
			return status(http.StatusRequestEntityTooLarge)
		}
		return nil
	}}
	o := newOutbox(t, s, &noWait{})
	for _, item := range []string{"a", "b", "bad", "c"} {
		o.add(item)
	}
	if lost := o.close(time.Hour); lost != 1 || strings.Join(s.got, "") != "abc" {
		t.Errorf("lost %d, got %v", lost, s.got)
	}
}

// TestOutboxDropsWhatTheServerFailsOver: an item over which the server fails each time does not keep others, and the run, waiting
// without end.
func TestOutboxDropsWhatTheServerFailsOver(t *testing.T) {
	s := &server{fail: func(batch []string) error {
		if slices.Contains(batch, "bad") {
			return status(http.StatusInternalServerError)
		}
		return nil
	}}
	o := newOutbox(t, s, &noWait{})
	for _, item := range []string{"a", "b", "bad", "c"} {
		o.add(item)
	}
	if lost := o.close(time.Hour); lost != 1 || strings.Join(s.got, "") != "abc" || s.requests > 2*client.WorkFaults {
		t.Errorf("lost %d, got %v after %d requests", lost, s.got, s.requests)
	}
}

// TestOutboxStopsInTheMiddleOfABatch: after the server has refused one item of a batch for good, the others are lost, and
// none of them is sent.
func TestOutboxStopsInTheMiddleOfABatch(t *testing.T) {
	s, release := &server{}, make(chan struct{})
	s.fail = func(batch []string) error {
		switch {
		case len(batch) > 1 || batch[0] == "unfit":
			return status(http.StatusUnprocessableEntity)
		case batch[0] == "forbidden":
			return status(http.StatusForbidden)
		}
		<-release // the others are added meanwhile
		return nil
	}
	o := newOutbox(t, s, &noWait{})
	for _, item := range []string{"first", "forbidden", "unfit", "unfit"} {
		o.add(item)
	}
	close(release)
	lost := o.close(time.Hour)
	if err := o.flush(t.Context(), 0); lost != 3 || !apierrors.IsForbidden(err) || len(s.got) != 1 {
		t.Errorf("lost %d, got %v: %v", lost, s.got, err)
	}
}

func TestOutboxStopsWhenTheStreamIsClosed(t *testing.T) {
	s := &server{fail: func([]string) error { return apierrors.NewConflict(schema.GroupResource{}, "t", errors.New("closed")) }}
	o := newOutbox(t, s, &noWait{})
	o.add("a")
	if lost := o.close(time.Hour); lost != 1 || s.requests != 1 {
		t.Errorf("lost %d, %d requests", lost, s.requests)
	}
	o.add("b")
	if o.lost != 2 {
		t.Errorf("lost %d", o.lost)
	}
}

// TestOutboxRunsOutOfPatience: an API that stays unavailable does not block the worker forever.
func TestOutboxRunsOutOfPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{fail: func([]string) error { return errors.New("connection refused") }}
		o := newOutbox(t, s, clock.RealClock{})
		o.add("a")
		o.add("b")
		began := time.Now()
		if lost := o.close(time.Hour); lost != 2 || len(s.got) != 0 {
			t.Errorf("lost %d, got %v", lost, s.got)
		}
		if took := time.Since(began); took != time.Hour {
			t.Errorf("it gave up after %v", took)
		}
	})
}

func TestOutboxQueueIsBounded(t *testing.T) {
	release := make(chan struct{})
	s := &server{fail: func([]string) error { <-release; return nil }}
	o := newOutbox(t, s, &noWait{})
	piece := strings.Repeat("x", 1<<20)
	for i := range 40 {
		o.add(piece + strconv.Itoa(i))
	}
	close(release)
	if lost := o.close(time.Hour); lost < 8 || lost+len(s.got) != 40 {
		t.Errorf("lost %d, got %d", lost, len(s.got))
	}
}

// TestClosingWaitsForNoWindow: with a clock that stands still no window ever ends,
// so whatever arrives did not wait for one.
func TestClosingWaitsForNoWindow(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	s := &server{seen: map[string]bool{}}
	o := &outbox[string]{name: "log", send: s.send, size: func(x string) int { return len(x) }, clock: c, window: logWindow}
	o.start(t.Context())
	o.signal() // a line waits for others
	for !c.HasWaiters() {
		runtime.Gosched()
	}
	o.add("the last line")
	if lost := o.close(time.Hour); lost != 0 || len(s.got) != 1 || c.Since(time.Unix(1000, 0)) != 0 {
		t.Errorf("lost %d, got %v", lost, s.got)
	}
}

// TestOpening: the first items are sent together when the outbox is closed, or at once if somebody waits for them.
func TestOpening(t *testing.T) {
	for name, wait := range map[string]func(o *outbox[string]) error{
		"closed":  func(o *outbox[string]) error { o.close(time.Hour); return nil },
		"flushed": func(o *outbox[string]) error { return o.flush(t.Context(), 0) },
	} {
		s := &server{seen: map[string]bool{}}
		o := &outbox[string]{name: "test", send: s.send, size: func(x string) int { return len(x) }, clock: clock.RealClock{}, opening: time.Hour}
		o.start(t.Context())
		o.add("a")
		o.add("b")
		if err := wait(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s.requests != 1 || !slices.Equal(s.got, []string{"a", "b"}) {
			t.Errorf("%s: %q with %d requests", name, s.got, s.requests)
		}
		// Later items do not wait.
		if name == "flushed" {
			o.add("c")
			if err := o.flush(t.Context(), 0); err != nil || !slices.Equal(s.got, []string{"a", "b", "c"}) {
				t.Errorf("later: %v, %q", err, s.got)
			}
			o.close(time.Hour)
		}
	}
}
