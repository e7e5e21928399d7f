// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/fairshare"
	"github.com/platform-ai/platform/test/kit"
)

// TestSlotsGoRoundNamespaces: a namespace that holds all slots gives those that end to one that was refused, and only while that
// may come back.
func TestSlotsGoRoundNamespaces(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	s := newSlots(3, fairshare.Shares{}, now)
	take := func(namespace string, want bool) {
		t.Helper()
		got := s.take(namespace)
		if got != want {
			t.Errorf("%s takes a slot: %v, want %v", namespace, got, want)
		}
		if !got {
			s.want(namespace)
		}
	}
	for range 3 {
		take("greedy", true)
	}
	take("greedy", false)
	take("meek", false)
	s.give("greedy")
	take("greedy", false) // it is kept for meek
	take("meek", true)
	s.give("greedy")
	take("meek", true) // both hold one, and it was told to come back as well
	s.give("greedy")
	take("meek", false) // greedy wants one and holds none
	now.SetTime(now.Now().Add(keptFor + time.Second))
	take("meek", true) // greedy did not come back
	s.give("meek")
	take("greedy", true)

	// A turn that waits is served before all that ask again.
	s = newSlots(1, fairshare.Shares{}, now)
	take("a", true)
	served := make(chan bool)
	go func() { served <- s.wait(t.Context(), "b") }()
	ended, end := context.WithCancel(t.Context())
	go func() { served <- s.wait(ended, "c") }()
	kit.Await(t, "two turns to wait", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.queue) == 2
	})
	end()
	if <-served {
		t.Error("a turn that was ended got a slot")
	}
	s.give("a")
	if !<-served {
		t.Error("the turn that waits got no slot")
	}
	take("a", false)
	s.give("b")
	take("a", true)
}

// TestReservedSlots: a slot that is reserved stays free for its namespace.
func TestReservedSlots(t *testing.T) {
	s := newSlots(3, fairshare.Shares{Reserved: map[string]int{"vip": 1}}, clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)))
	for _, tc := range []struct {
		namespace string
		want      bool
	}{{"a", true}, {"a", true}, {"a", false}, {"vip", true}, {"vip", false}} {
		if got := s.take(tc.namespace); got != tc.want {
			t.Errorf("%s takes a slot: %v, want %v", tc.namespace, got, tc.want)
		}
	}
}

// TestHeldSlotsAreCounted: the metrics say which namespaces hold slots, and no sample stays of one that holds none.
func TestHeldSlotsAreCounted(t *testing.T) {
	m := newMetrics()
	for _, namespace := range []string{"a", "a", "b"} {
		m.took(namespace)
	}
	m.gave("b")
	if err := testutil.CollectAndCompare(m.slots, strings.NewReader(`# HELP platform_chat_slots_held Turns of chats that run now, by namespace. Namespaces without one have no sample.
# TYPE platform_chat_slots_held gauge
platform_chat_slots_held{namespace="a"} 2
`)); err != nil {
		t.Error(err)
	}
}
