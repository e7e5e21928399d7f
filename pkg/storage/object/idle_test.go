// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/test/kit"
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
	kit.Await(t, "a first look at both objects", func() bool { return !unread.obj.Load().used.Load() && !read.obj.Load().used.Load() })
	get("read")
	clock.Step(h.db.opts.IdleAfter)
	kit.Await(t, "the object that nobody reads leaves memory", func() bool { return unread.obj.Load() == nil })
	if read.obj.Load() == nil {
		t.Error("an object that was read has left memory")
	}
	kit.Await(t, "what left memory is counted", func() bool { return h.db.Dropped() >= uint64(2*eventOverhead)+decodedSize*uint64(unread.size) })
	kit.Await(t, "the events leave memory", func() bool { return events() == 0 })
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
