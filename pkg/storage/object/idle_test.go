// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestIdle: what nobody reads leaves memory, what is read stays, and nothing is lost.
func TestIdle(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	h := open(t, func(s *setup) { s.db.Clock = clock })
	awaitWaiters(t, clock, 3)
	all := watchFrom(t, h, 1)
	for _, name := range []string{"read", "unread"} {
		create(t, h, name)
		next(t, all)
	}
	topic := h.topic
	entryOf := func(name string) *entry {
		t.Helper()
		k, err := h.key(podKey(name), false)
		if err != nil {
			t.Fatal(err)
		}
		return topic.get(k)
	}
	read, unread := entryOf("read"), entryOf("unread")
	get := func(name string) {
		t.Helper()
		var p example.Pod
		if err := h.Get(testContext(t), podKey(name), storage.GetOptions{}, &p); err != nil || p.Name != name {
			t.Fatalf("get: %q, %v", p.Name, err)
		}
	}
	events := func() int {
		topic.mu.RLock()
		defer topic.mu.RUnlock()
		return len(topic.ring.events)
	}
	if read.obj.Load() == nil || unread.obj.Load() == nil || events() != 2 {
		t.Fatal("objects and events are not in memory")
	}
	clock.Step(h.db.opts.IdleAfter)
	await(t, func() bool { return !unread.obj.Load().used.Load() && !read.obj.Load().used.Load() })
	get("read")
	clock.Step(h.db.opts.IdleAfter)
	await(t, func() bool { return unread.obj.Load() == nil })
	if read.obj.Load() == nil {
		t.Error("an object that was read has left memory")
	}
	await(t, func() bool { return Dropped(h.db)() >= uint64(2*eventOverhead)+decodedSize*uint64(unread.size) })
	await(t, func() bool { return events() == 0 })
	get("unread")
	late := watchFrom(t, h, 1)
	next(t, late)
	next(t, late)
	p := setLabel(t, h, "unread", "1")
	for _, w := range []watch.Interface{all, late} {
		if ev := next(t, w); ev.Type != watch.Modified || revisionOf(t, ev.Object) != revisionOf(t, p) {
			t.Errorf("%s at %d", ev.Type, revisionOf(t, ev.Object))
		}
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for ; !done(); runtime.Gosched() {
		if ctx.Err() != nil {
			t.Fatal("it did not happen")
		}
	}
}
