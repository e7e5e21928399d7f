// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

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
			got = c.any(key.Name) && c.succeed(key, now)
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
		if c.succeed(key, now) {
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
