// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"slices"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
)

// action is what is done with an event.
type action int

// Actions.
const (
	// idle: no event of the session is open.
	idle action = iota
	// pause: it is not time yet.
	pause
	// expire: it took too long.
	expire
	// dispatch: its task is made.
	dispatch
	// follow: its task is looked at.
	follow
)

// move is what is done next in a session.
type move struct {
	do    action
	event *v1alpha1.GatewayEvent
	// at is until when to pause.
	at time.Time
}

// moment is when a session is looked at, and by whom.
type moment struct {
	now time.Time
	// holder is this process.
	holder string
	// hurried is set if what was in the way of the session is not any more, so that nothing is waited for.
	hurried bool
	// expiry is when an event expires that does not say so.
	expiry time.Duration
}

// next returns what is done next in a session: something with the first of its events that is not ended. An event that decides on an
// approval has no task; the server ends it.
func next(events []*v1alpha1.GatewayEvent, m moment) move {
	var head *v1alpha1.GatewayEvent
	for _, e := range events {
		if e.Status.Decision == nil && !eventEnded(e) && (head == nil || compareEvents(e, head) < 0) {
			head = e
		}
	}
	if head == nil {
		return move{do: idle}
	}
	s, expires := &head.Status, expiryOf(head, m.expiry)
	switch s.State {
	case v1alpha1.GatewayEventDispatching:
		if s.LeaseHolder != m.holder && s.LeaseUntil != nil && s.LeaseUntil.After(m.now) {
			return move{pause, head, s.LeaseUntil.Time}
		}
		return move{do: dispatch, event: head} // its task may exist, so it does not simply expire
	case v1alpha1.GatewayEventTaskCreated:
		return move{do: follow, event: head}
	}
	switch {
	case !expires.After(m.now):
		return move{do: expire, event: head}
	case s.AttemptCount > 0 && s.NextAttemptAt != nil && s.NextAttemptAt.After(m.now) && !m.hurried: // a new one has it in whole seconds
		at := s.NextAttemptAt.Time
		if expires.Before(at) {
			at = expires
		}
		return move{pause, head, at}
	}
	return move{do: dispatch, event: head}
}

// compareEvents compares the places of two events of a session.
func compareEvents(a, b *v1alpha1.GatewayEvent) int {
	return cmp.Or(cmp.Compare(a.Status.TranscriptOrder, b.Status.TranscriptOrder), cmp.Compare(a.Name, b.Name))
}

// eventEnded reports whether nothing is left to do about an event.
func eventEnded(e *v1alpha1.GatewayEvent) bool {
	switch e.Status.State {
	case v1alpha1.GatewayEventCompleted, v1alpha1.GatewayEventRejected, v1alpha1.GatewayEventDeadLettered, v1alpha1.GatewayEventExpired:
		return true
	}
	return false
}

// expiryOf returns when an event expires.
func expiryOf(e *v1alpha1.GatewayEvent, after time.Duration) time.Time {
	if e.Status.ExpiresAt != nil {
		return e.Status.ExpiresAt.Time
	}
	return e.Spec.CreatedAt.Add(after)
}

// turn returns the delivery of a session whose turn it is, and when it is due; nil if there is none.
func turn(deliveries []*v1alpha1.GatewayDelivery) (head *v1alpha1.GatewayDelivery, due time.Time) {
	open := slices.DeleteFunc(slices.Clone(deliveries), deliveryEnded)
	if len(open) == 0 {
		return nil, due
	}
	head = slices.MinFunc(open, compareDeliveries)
	at := head.Status.NextAttemptAt
	if head.Status.State == v1alpha1.GatewayDeliverySending {
		at = head.Status.LeaseUntil
	}
	if at != nil {
		due = at.Time
	}
	return head, due
}

// compareDeliveries compares the places of two deliveries of a session.
func compareDeliveries(a, b *v1alpha1.GatewayDelivery) int {
	return cmp.Or(gateway.CompareDeliveries(&a.Spec, &b.Spec), cmp.Compare(a.Name, b.Name))
}

// deliveryEnded reports whether nothing is left to do about a delivery.
func deliveryEnded(d *v1alpha1.GatewayDelivery) bool {
	switch d.Status.State {
	case v1alpha1.GatewayDeliveryDelivered, v1alpha1.GatewayDeliveryFailed, v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.GatewayDeliveryExpired:
		return true
	}
	return false
}
