// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// limited runs f with a store of dir that has limits, and closes it.
func limited(t *testing.T, dir string, l blob.Limits, c clock.PassiveClock, f func(s *blob.Store)) {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	f(blob.New(e, l, c))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// used returns the total of a namespace, which it reads from the error of a request that is too large.
func used(t *testing.T, s *blob.Store, ns string) int64 {
	t.Helper()
	err := s.PutFile(t.Context(), ns, "asks", blob.File{Name: "f"}, make([]byte, 5000))
	limit, ok := errors.AsType[*quota.LimitError](err)
	if !ok || limit.Of != "namespace "+ns || limit.Most != 4000 {
		t.Fatalf("asked for 5000: %v", err)
	}
	return limit.Used
}

// The total of a namespace is the sum of its files and logs, no matter what is replaced, deleted or written
// concurrently, and after the store is opened again.
func TestNamespaceTotal(t *testing.T) {
	dir, l, ctx := t.TempDir(), blob.Limits{NamespaceBytes: 4000}, t.Context()
	want := func(s *blob.Store, n int64) {
		t.Helper()
		if got := used(t, s, "a"); got != n {
			t.Errorf("%d bytes, want %d", got, n)
		}
	}
	limited(t, dir, l, clock.RealClock{}, func(s *blob.Store) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				uid := types.UID(fmt.Sprint("u", i))
				if err := errors.Join(
					s.PutFile(ctx, "a", uid, blob.File{Name: "f"}, make([]byte, 300)),
					s.PutFile(ctx, "a", uid, blob.File{Name: "f"}, make([]byte, 200)),
					s.AppendLog(ctx, "a", uid, make([]byte, 100)),
					s.AppendLog(ctx, "b", types.UID(fmt.Sprint("other", i)), make([]byte, 100)),
				); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want(s, 8*300)
		if err := s.PutFile(ctx, "b", "other0", blob.File{Name: "f"}, make([]byte, 3000)); err != nil {
			t.Errorf("another namespace: %v", err)
		}
		if err := s.AppendLog(ctx, "a", "u0", make([]byte, 1601)); !errors.Is(err, quota.ErrLimit) ||
			!strings.Contains(err.Error(), "exceeded quota: bytes of results, artifacts and logs of namespace a: requested 1601, used 2400, limited 4000") {
			t.Errorf("a log over the total: %v", err)
		}
	})
	limited(t, dir, l, clock.RealClock{}, func(s *blob.Store) {
		want(s, 8*300)
		for range 2 {
			if err := s.Delete(ctx, "u0"); err != nil {
				t.Fatal(err)
			}
			want(s, 7*300)
		}
		if err := s.AppendLog(ctx, "a", "u1", make([]byte, 1601)); err != nil {
			t.Errorf("after a deletion: %v", err)
		}
	})
	limited(t, dir, l, clock.RealClock{}, func(s *blob.Store) {
		want(s, 7*300+1601)
		for i := range 8 {
			if err := s.Delete(ctx, types.UID(fmt.Sprint("u", i))); err != nil {
				t.Fatal(err)
			}
		}
		want(s, 0)
	})
}

// Files may be written in a burst and then at the rate of their owner. Files and logs of a namespace have a rate together.
// An empty file counts as well, and a file for which there is no room takes nothing from the rates.
func TestFileRates(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	l := blob.Limits{Bytes: 100_000, FileRate: 100, NamespaceRate: 1000}
	put := func(s *blob.Store, ns, uid string, n int) error {
		return s.PutFile(t.Context(), ns, types.UID(uid), blob.File{Name: "f"}, make([]byte, n))
	}
	tooFast := func(err error, of string, seconds int) {
		t.Helper()
		rate, ok := errors.AsType[*quota.RateError](err)
		if !ok || rate.Of != of || rate.RetryAfter() != seconds {
			t.Errorf("%v, want the rate of the %s, and %d seconds", err, of, seconds)
		}
	}
	limited(t, t.TempDir(), l, c, func(s *blob.Store) {
		if err := put(s, "a", "u", 200_000); !errors.Is(err, quota.ErrLimit) {
			t.Errorf("no room: %v", err)
		}
		for i := range 4 { // 1,600 bytes at once
			if err := put(s, "a", "u", 0); err != nil {
				t.Fatalf("empty file %d: %v", i, err)
			}
		}
		tooFast(put(s, "a", "u", 0), "task", 1)
		if err := put(s, "a", "other", 14_400); err != nil { // 16,400 of 16,000 in the namespace
			t.Fatalf("another owner: %v", err)
		}
		tooFast(put(s, "a", "third", 0), "namespace", 1)
		tooFast(s.AppendLog(t.Context(), "a", "third", []byte("x")), "namespace", 1)
		if err := put(s, "b", "fourth", 0); err != nil {
			t.Errorf("another namespace: %v", err)
		}
		c.SetTime(c.Now().Add(time.Second))
		if err := s.AppendLog(t.Context(), "a", "third", []byte("x")); err != nil {
			t.Errorf("a second later: %v", err)
		}
	})
}

// A log may be written in a burst and then at its rate. A faster writer gets the time at which to retry.
func TestLogRate(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	limited(t, t.TempDir(), blob.Limits{LogRate: 10}, c, func(s *blob.Store) {
		if err := s.AppendLog(t.Context(), "a", "u", make([]byte, 200)); err != nil {
			t.Fatal(err)
		}
		rate, ok := errors.AsType[*quota.RateError](s.AppendLog(t.Context(), "a", "u", []byte("x")))
		if !ok || rate.RetryAfter() != 5 {
			t.Fatalf("%+v", rate)
		}
		if err := s.AppendLog(t.Context(), "a", "other", []byte("x")); err != nil {
			t.Errorf("another owner: %v", err)
		}
		c.SetTime(c.Now().Add(5 * time.Second))
		if err := s.AppendLog(t.Context(), "a", "u", []byte("x")); err != nil {
			t.Errorf("after %v: %v", rate.After, err)
		}
	})
}
