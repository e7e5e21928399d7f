// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// A value is read once for each change, and never from before a change that was acknowledged.
func TestCacheByRevision(t *testing.T) {
	t.Parallel()
	rev, reads := uint64(5), 0
	c := Cache[types.NamespacedName, string]{Changed: func() (uint64, bool) { return rev, true }, Clock: testingclock.NewFakeClock(time.Now())}
	stored := map[string]string{"a": "1", "b": "2"}
	get := func(name string) string {
		t.Helper()
		v, err := c.Get(t.Context(), types.NamespacedName{Name: name}, func(context.Context) (string, error) {
			reads++
			return stored[name], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for range 3 {
		if got := get("a") + get("b"); got != "12" {
			t.Fatalf("read %s", got)
		}
	}
	stored["a"], rev = "3", 6
	if got := get("a") + get("a"); got != "33" || reads != 3 {
		t.Errorf("read %s after %d reads", got, reads)
	}
	// A write while the value is read.
	_, _ = c.Get(t.Context(), types.NamespacedName{Name: "c"}, func(context.Context) (string, error) {
		old := stored["a"]
		stored["a"], rev = "4", 7
		return old, nil
	})
	if got := get("a"); got != "4" {
		t.Errorf("read %s after a write", got)
	}
	fails := errors.New("away")
	if _, err := c.Get(t.Context(), types.NamespacedName{Name: "d"}, func(context.Context) (string, error) { return "", fails }); !errors.Is(err, fails) {
		t.Errorf("%v", err)
	}
	for i := range maxCached + 1 {
		get(fmt.Sprint(i))
	}
	if n := len(c.all); n > maxCached {
		t.Errorf("%d values are kept", n)
	}
}

// Where changes are not known, a value is kept for its age, and until it is forgotten.
func TestCacheByAge(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakeClock(time.Now())
	c := Cache[types.NamespacedName, int]{Changed: func() (uint64, bool) { return 0, false }, Clock: clock, Age: time.Minute}
	reads, id := 0, types.NamespacedName{Name: "a"}
	get := func() int {
		v, _ := c.Get(t.Context(), id, func(context.Context) (int, error) { reads++; return reads, nil })
		return v
	}
	if get(); get() != 1 {
		t.Error("it was read again")
	}
	if clock.Step(time.Minute); get() != 2 {
		t.Error("it was not read after its age")
	}
	if c.Forget(id); get() != 3 {
		t.Error("it was not read after it was forgotten")
	}
	if c.Age = 0; get() != 4 {
		t.Error("it was kept without an age")
	}
}
