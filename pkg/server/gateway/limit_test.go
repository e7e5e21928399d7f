// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestRates: an address has its burst and then its rate, all together have theirs, and not more addresses are remembered than fit.
func TestRates(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	r := newRates(c)
	takes := func(address string, n int) (got int) {
		for range n {
			if r.take(address) && r.takeOfAll() {
				got++
			}
		}
		return got
	}
	if got := takes("10.0.0.1:1", oneBurst+10); got != oneBurst {
		t.Errorf("one address: %d", got)
	}
	if got := takes("10.0.0.1:2", 1); got != 0 {
		t.Error("another port is another address")
	}
	for range 2 * allBurst { // without a token
		r.take("10.0.0.3:1")
	}
	if got := takes("10.0.0.2:1", 2*oneBurst); got != allBurst-oneBurst {
		t.Errorf("all together: %d", got)
	}
	if got, other := hostOf("[2001:db8::1]:1"), hostOf("[2001:db8::2:3]:4"); got != other {
		t.Errorf("one network is %s and %s", got, other)
	}
	if got := hostOf("[::ffff:10.0.0.1]:5"); got != "10.0.0.1" {
		t.Errorf("an address of IPv4 is %s", got)
	}
	c.SetTime(c.Now().Add(time.Second))
	if got := takes("10.0.0.1:1", allPerSecond); got != onePerSecond {
		t.Errorf("a second later: %d", got)
	}
	for i := range 2 * maxAddresses {
		r.take(fmt.Sprintf("10.1.%d.%d:1", i/256, i%256))
	}
	if len(r.one) != maxAddresses {
		t.Errorf("%d addresses are remembered", len(r.one))
	}
	c.SetTime(c.Now().Add(forgotten))
	r.take("10.9.9.9:1")
	if len(r.one) != 1 {
		t.Errorf("%d addresses are remembered after a while", len(r.one))
	}
}

// TestWaitOf: Retry-After in seconds and as a date, within bounds; anything else is nothing.
func TestWaitOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "7": 7 * time.Second, "999999": maxWait, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0, now.Add(99 * time.Hour).Format(http.TimeFormat): maxWait,
	} {
		if got := waitOf(value, now); got != want {
			t.Errorf("%q: %s, not %s", value, got, want)
		}
	}
}

// TestFinal: which answers to a delivery mean that it is never accepted.
func TestFinal(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{
		0: false, 200: false, 204: false, 301: true, 400: true, 401: false, 403: false, 404: true, 408: false, 409: true, 413: true, 422: true, 425: false, 429: false, 500: false, 503: false,
	} {
		if final(code) != want {
			t.Errorf("%d: %v", code, !want)
		}
	}
}

// TestOpen: events are counted only when there may be too many, and what has ended since makes room.
func TestOpen(t *testing.T) {
	t.Parallel()
	stored, counted := 3, 0
	o := &open{limit: 5, most: map[types.UID]int{}, count: func(*v1alpha1.Gateway, int) (int, error) {
		counted++
		return stored, nil
	}}
	g := &v1alpha1.Gateway{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	takes := func(n int) (got int) {
		for range n {
			if o.take(g) == nil {
				stored++
				got++
			}
		}
		return got
	}
	if got := takes(2); got != 2 || counted != 1 {
		t.Errorf("%d events, counted %d times", stored, counted)
	}
	if got := takes(1); got != 0 || counted != 2 {
		t.Errorf("a full gateway takes one; counted %d times", counted)
	}
	stored = 1 // the others have ended
	if got := takes(1); got != 1 || counted != 3 {
		t.Errorf("there is room again; counted %d times", counted)
	}
	o.add(g.UID) // replayed
	stored++
	o.add("another")
	if got := takes(3); got != 2 || counted != 4 {
		t.Errorf("with one replayed: %d events, counted %d times", stored, counted)
	}
	if o.forget(g.UID); len(o.most) != 0 {
		t.Errorf("remembered: %v", o.most)
	}
}
