// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TestCoolingWritesRarely: however many requests fail and succeed, the status of a Provider is written at most twice in
// coolWrites, and only if there is something new; a success that came too early is not lost.
func TestCoolingWritesRarely(t *testing.T) {
	var c cooling
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	now := time.Unix(1000, 0)
	writes := func(kind string, want bool) {
		t.Helper()
		got := false
		switch kind {
		case "fail":
			got = c.fail(key, now.Add(time.Minute), now)
		case "long":
			got = c.fail(key, now.Add(time.Hour), now)
		case "succeed":
			c.begin(key.Name, "task", "1/1")
			got = c.any(key.Name) && c.succeed(key, "task", "1/1", now)
		}
		if got != want {
			t.Errorf("%s at %v: %v", kind, now.Unix(), got)
		}
	}
	writes("succeed", false) // nothing is known
	writes("fail", true)
	writes("fail", false)
	writes("long", false) // too early
	writes("succeed", false)
	now = now.Add(coolWrites)
	writes("fail", false) // hardly longer than what is stored
	writes("long", true)
	now = now.Add(coolWrites)
	writes("succeed", true)
	writes("succeed", false)
	writes("fail", true) // a new failure after a success
	total := 0
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		if c.fail(key, now.Add(time.Minute), now) {
			total++
		}
		c.begin(key.Name, "task", "1/1")
		if c.succeed(key, "task", "1/1", now) {
			total++
		}
	}
	if total > 3 {
		t.Errorf("%d writes in 10 s", total)
	}
	c.fail(types.NamespacedName{Name: "other"}, now.Add(2*time.Hour), now.Add(time.Hour))
	if c.any(key.Name) {
		t.Error("what is over is not forgotten")
	}
}

// TestCoolingOfOldRequests: only a request that began after the newest failure ends a cool-down. Calls of other tasks, and of
// other Providers, have the same names.
func TestCoolingOfOldRequests(t *testing.T) {
	var c cooling
	key, other := types.NamespacedName{Namespace: "ns", Name: "p"}, types.NamespacedName{Namespace: "ns", Name: "other"}
	now := time.Unix(1000, 0)
	later := func() time.Time {
		now = now.Add(2 * coolWrites)
		return now
	}
	ends := func(why string, key types.NamespacedName, task types.UID, want bool) {
		t.Helper()
		if got := c.succeed(key, task, "1/1", later()); got != want {
			t.Errorf("%s: %v", why, got)
		}
	}
	c.begin(key.Name, "old", "1/1")
	c.fail(key, now.Add(time.Hour), now)
	c.fail(other, now.Add(time.Hour), now)
	ends("began before the failure", key, "old", false)
	c.begin(key.Name, "new", "1/1")
	ends("still did", key, "old", false)
	ends("another Provider", other, "new", false)
	c.fail(key, now.Add(time.Hour), now) // too soon after the other one to be written
	ends("began before the second failure", key, "new", false)
	c.begin(key.Name, "new", "1/2")
	ends("an earlier request of the run", key, "new", false)
	c.begin(key.Name, "new", "1/1")
	ends("began after both", key, "new", true)
	ends("has ended it", key, "new", false)
}
