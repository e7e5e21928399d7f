// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// When a lease ends, the outcome is unknown, whoever notices it, and nothing changes that.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.Step(300 * time.Millisecond)
	for name, end := range map[string]func(e *v1alpha1.ToolEffect){
		"claim": func(e *v1alpha1.ToolEffect) {
			_, err := w.Claim(t.Context(), e, "approval of claim")
			code(t, "claim", err, 502, "not sent again")
		},
		"reconcile": func(*v1alpha1.ToolEffect) { w.ok(w.Reconcile(t.Context())) },
		"restart":   func(*v1alpha1.ToolEffect) { w.losePower(50, 3); w.ok(w.Reconcile(t.Context())) },
	} {
		e := w.reserve("work", name)
		c := w.claim(e, "approval of "+name)
		until := c.Effect().Status.LeaseExpiresAt.Time
		if left := until.Sub(w.clock.Now()); left < 30*time.Second || left >= 31*time.Second || until.Nanosecond() != 0 {
			t.Errorf("the lease ends in %s", left)
		}
		w.clock.SetTime(until.Add(-time.Nanosecond))
		w.ok(w.Reconcile(t.Context()))
		_, err := w.Claim(t.Context(), e, "approval of "+name)
		code(t, "before the end", err, 409, "still executing")
		w.is(e, v1alpha1.ToolEffectInFlight, "")
		w.clock.SetTime(until)
		end(e)
		w.is(e, v1alpha1.ToolEffectOutcomeUnknown, "was not over within 30 s")
		before := w.now(e)
		c.effects = w.Effects // that of a server that lives on
		for what, err := range map[string]error{
			"succeed": c.Succeed(t.Context(), 200, []byte("late")), "fail": c.Fail(t.Context(), 400, "late"), "hand back": c.HandBack(t.Context()),
		} {
			code(t, name+": late "+what, err, 502, "not known")
		}
		w.ok(c.Unknown(t.Context(), "late"))
		if now := w.now(e); now.ResourceVersion != before.ResourceVersion || c.Effect().Status.State != v1alpha1.ToolEffectOutcomeUnknown {
			t.Errorf("%s: changed: %+v", name, now.Status)
		}
		_, err = w.Claim(t.Context(), e, "approval of "+name)
		code(t, name+": again", err, 502)
		_, err = w.Claim(t.Context(), e, "another")
		code(t, name+": another approval", err, 403)
		w.clock.Step(700 * time.Millisecond)
	}
	// What is known counts, also late, as long as nobody has settled the effect.
	c := w.claim(w.reserve("work", "slow"), "slow")
	w.clock.Step(time.Hour)
	w.ok(c.Succeed(t.Context(), 200, []byte("slow")))
	w.is(c.Effect(), v1alpha1.ToolEffectSucceeded, "")
}

// More leases end at once than are read at a time.
func TestManyLeasesEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 2*atOnce + 1 {
		w.in(v1alpha1.ToolEffectInFlight, fmt.Sprint(i))
	}
	w.clock.Step(time.Minute)
	w.ok(w.Reconcile(t.Context()))
	n := 0
	w.ok(w.o.Stored.Select(t.Context(), "default", fields.OneTermEqualSelector(FieldState, "OutcomeUnknown"), func(*v1alpha1.ToolEffect) error { n++; return nil }))
	if n != 2*atOnce+1 {
		t.Errorf("%d ended", n)
	}
}
