// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
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
