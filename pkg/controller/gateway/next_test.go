// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns noon and some seconds.
func at(seconds int) *metav1.Time {
	t := metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
	return &t
}

func eventOf(name string, order int64, state v1alpha1.GatewayEventState, change ...func(*v1alpha1.GatewayEventStatus)) *v1alpha1.GatewayEvent {
	e := &v1alpha1.GatewayEvent{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e.Spec.CreatedAt = metav1.NewMicroTime(noon.Add(-time.Hour))
	e.Status = v1alpha1.GatewayEventStatus{State: state, TranscriptOrder: order}
	for _, f := range change {
		f(&e.Status)
	}
	return e
}

// TestNext: of a session one event is worked on, the first that is not ended, and what is done depends on its state and the time.
func TestNext(t *testing.T) {
	type status = v1alpha1.GatewayEventStatus
	next1 := func(at *metav1.Time) func(*status) {
		return func(s *status) { s.NextAttemptAt, s.AttemptCount = at, 1 }
	}
	expires := func(at *metav1.Time) func(*status) { return func(s *status) { s.ExpiresAt = at } }
	lease := func(holder string, until *metav1.Time) func(*status) {
		return func(s *status) { s.LeaseHolder, s.LeaseUntil = holder, until }
	}
	queued, held, running := v1alpha1.GatewayEventQueued, v1alpha1.GatewayEventDispatching, v1alpha1.GatewayEventTaskCreated
	for name, tc := range map[string]struct {
		events  []*v1alpha1.GatewayEvent
		hurried bool
		do      action
		event   string
		until   *metav1.Time
	}{
		"nothing": {do: idle},
		"all ended": {events: []*v1alpha1.GatewayEvent{
			eventOf("a", 1, v1alpha1.GatewayEventCompleted), eventOf("b", 2, v1alpha1.GatewayEventExpired), eventOf("c", 3, v1alpha1.GatewayEventRejected), eventOf("d", 4, v1alpha1.GatewayEventDeadLettered),
		}, do: idle},
		"the lowest order":           {events: []*v1alpha1.GatewayEvent{eventOf("a", 10, queued), eventOf("b", 9, queued)}, do: dispatch, event: "b"},
		"then the name":              {events: []*v1alpha1.GatewayEvent{eventOf("b", 9, queued), eventOf("a", 9, queued)}, do: dispatch, event: "a"},
		"after one that ended":       {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, v1alpha1.GatewayEventCompleted), eventOf("b", 2, queued)}, do: dispatch, event: "b"},
		"a running one holds others": {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, running), eventOf("b", 2, queued)}, do: follow, event: "a"},
		"a decision holds none": {events: []*v1alpha1.GatewayEvent{
			eventOf("a", 1, queued, func(s *status) { s.Decision = &v1alpha1.GatewayEventDecision{} }), eventOf("b", 2, queued),
		}, do: dispatch, event: "b"},
		"an obstacle holds others":      {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, next1(at(5))), eventOf("b", 2, queued)}, do: pause, event: "a", until: at(5)},
		"a new one does not wait":       {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, func(s *status) { s.NextAttemptAt = at(1) })}, do: dispatch, event: "a"},
		"it is due":                     {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, next1(at(0)))}, do: dispatch, event: "a"},
		"the obstacle is gone":          {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, next1(at(5)))}, hurried: true, do: dispatch, event: "a"},
		"it expires before it is due":   {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, next1(at(5)), expires(at(3)))}, do: pause, event: "a", until: at(3)},
		"it expired":                    {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, next1(at(5)), expires(at(0)))}, hurried: true, do: expire, event: "a"},
		"it expires by default":         {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, queued, func(*status) {})}, do: dispatch, event: "a"},
		"another process holds it":      {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, held, lease("other", at(7)))}, hurried: true, do: pause, event: "a", until: at(7)},
		"another process held it":       {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, held, lease("other", at(0)))}, do: dispatch, event: "a"},
		"this process holds it":         {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, held, lease("me", at(7)), expires(at(-9)))}, do: dispatch, event: "a"},
		"a task that runs is not ended": {events: []*v1alpha1.GatewayEvent{eventOf("a", 1, running, expires(at(-9)))}, do: follow, event: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(tc.events, moment{now: noon, holder: "me", hurried: tc.hurried, expiry: 24 * time.Hour})
			have := ""
			if got.event != nil {
				have = got.event.Name
			}
			if got.do != tc.do || have != tc.event || tc.until != nil && !got.at.Equal(tc.until.Time) {
				t.Errorf("got %d of %q at %s; want %d of %q at %v", got.do, have, got.at, tc.do, tc.event, tc.until)
			}
		})
	}
	if got := next([]*v1alpha1.GatewayEvent{eventOf("a", 1, queued)}, moment{now: noon, expiry: time.Hour}); got.do != expire {
		t.Errorf("an event of an hour ago that says nothing: %d", got.do)
	}
}

// TestTurn: deliveries are sent in the order of their events, and of one event the answer is the last.
func TestTurn(t *testing.T) {
	d := func(name string, sequence int64, part int32, state v1alpha1.GatewayDeliveryState, next, lease *metav1.Time) *v1alpha1.GatewayDelivery {
		o := &v1alpha1.GatewayDelivery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Spec.Sequence, o.Spec.Part, o.Status = sequence, part, v1alpha1.GatewayDeliveryStatus{State: state, NextAttemptAt: next, LeaseUntil: lease}
		return o
	}
	pending, sending, again, done := v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliverySending, v1alpha1.GatewayDeliveryRetryScheduled, v1alpha1.GatewayDeliveryDelivered
	for name, tc := range map[string]struct {
		all  []*v1alpha1.GatewayDelivery
		head string
		due  *metav1.Time
	}{
		"none":                     {all: []*v1alpha1.GatewayDelivery{d("a", 1, 0, done, nil, nil)}},
		"the first":                {all: []*v1alpha1.GatewayDelivery{d("b", 2, 0, pending, at(0), nil), d("a", 1, 0, pending, at(1), nil)}, head: "a", due: at(1)},
		"interim texts first":      {all: []*v1alpha1.GatewayDelivery{d("c", 1, 0, pending, at(0), nil), d("b", 1, 2, pending, at(0), nil), d("a", 1, 1, pending, at(3), nil)}, head: "a", due: at(3)},
		"after one that was given": {all: []*v1alpha1.GatewayDelivery{d("a", 1, 0, v1alpha1.GatewayDeliveryDeadLettered, nil, nil), d("b", 2, 0, again, at(9), nil)}, head: "b", due: at(9)},
		"one that is sent":         {all: []*v1alpha1.GatewayDelivery{d("a", 1, 0, sending, nil, at(4)), d("b", 2, 0, pending, at(0), nil)}, head: "a", due: at(4)},
	} {
		head, due := turn(tc.all)
		if head == nil {
			if tc.head != "" {
				t.Errorf("%s: none", name)
			}
			continue
		}
		if head.Name != tc.head || !due.Equal(tc.due.Time) {
			t.Errorf("%s: %s at %s, want %s at %s", name, head.Name, due, tc.head, tc.due)
		}
	}
}

// TestBackoff: tries are 1 s apart, and then twice as long each time, up to a limit. What is stored is in whole seconds and not earlier.
func TestBackoff(t *testing.T) {
	for n, want := range map[int32]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: maxDelay, 1 << 30: maxDelay} {
		if got := backoff(n, maxDelay); got != want {
			t.Errorf("after %d failures: %s, want %s", n, got, want)
		}
	}
	for offset, want := range map[time.Duration]int{0: 0, time.Nanosecond: 1, time.Second - time.Nanosecond: 1, time.Second: 1} {
		if got := whole(noon.Add(offset)); !got.Equal(at(want)) {
			t.Errorf("%s is stored as %s, want %s", offset, got, at(want))
		}
	}
}

// TestRoom: a gateway sends as many deliveries at once as it may; while its adapter cannot be reached, one session tries, and its success
// wakes the others.
func TestRoom(t *testing.T) {
	session := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
	}
	var woken []string
	expect := func(when string, want ...string) {
		t.Helper()
		if len(woken) != len(want) {
			t.Fatalf("%s: woken %v, want %v", when, woken, want)
		}
		for i := range want {
			if woken[i] != want[i] {
				t.Fatalf("%s: woken %v, want %v", when, woken, want)
			}
		}
		woken = nil
	}
	r := newRoom(2)
	r.wake(func(q reconcile.Request) { woken = append(woken, q.Name) })
	for name, want := range map[string]bool{"a": true, "b": true} {
		if got := r.enter("g", session(name)); got != want {
			t.Fatalf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"c", "d", "c"} {
		if r.enter("g", session(name)) {
			t.Fatalf("there is room for %s", name)
		}
	}
	if !r.enter("other", session("x")) {
		t.Fatal("another gateway has no room")
	}
	r.leave("other", true)
	r.leave("g", true)
	expect("one left", "c")
	r.leave("g", false)
	expect("the adapter is down")
	if !r.enter("g", session("c")) {
		t.Fatal("nobody may try")
	}
	if r.enter("g", session("b")) {
		t.Fatal("two may try")
	}
	r.leave("g", false)
	expect("still down")
	if !r.enter("g", session("c")) {
		t.Fatal("nobody may try again")
	}
	r.leave("g", true)
	expect("it is up", "d", "b")
	if len(r.of) != 0 {
		t.Errorf("it remembers %v", r.of)
	}
}
