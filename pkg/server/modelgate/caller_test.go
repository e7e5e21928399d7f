// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"fmt"
	"testing"
)

// TestCallersAreForgotten: a gate that has served many callers knows, after a while, only those that ask or have open requests.
func TestCallersAreForgotten(t *testing.T) {
	g, c := newGate()
	used := int64(5)
	for i := range 1000 {
		r := request(fmt.Sprint("caller ", i), 1, Limit{Of: fmt.Sprint("Provider ", i%10), Requests: 1000})
		r.Served = true
		if wait := after(t, g, r); wait != 0 {
			t.Fatalf("waits %v", wait)
		}
		if i > 0 {
			g.End(ended(string(r.Task), 1, &used, &used))
		}
	}
	c.SetTime(c.Now().Add(memory))
	after(t, g, request("new", 1, Limit{Of: "Provider new", Requests: 10}))
	if len(g.tasks) != 2 || len(g.windows) != 1 {
		t.Errorf("%d callers and %d limits are known", len(g.tasks), len(g.windows))
	}
	if !g.End(ended("caller 0", 1, &used, nil)) {
		t.Error("an open request was forgotten")
	}
}

// TestCallersHaveManyOpenRequests: each of the many requests that a caller has open at the same time gives back what it does not use.
func TestCallersHaveManyOpenRequests(t *testing.T) {
	const open = 1024 // as many as the compatible APIs answer at a time
	g, _ := newGate()
	limit, used := Limit{Of: "Provider ns/p", Tokens: 10 * open}, int64(0)
	for i := range open {
		r := request("caller", i, limit)
		r.Served = true
		if wait := after(t, g, r); wait != 0 {
			t.Fatalf("request %d waits %v", i, wait)
		}
	}
	for i := range open {
		if !g.End(ended("caller", i, &used, nil)) {
			t.Fatalf("request %d is not known", i)
		}
	}
	if wait := after(t, g, request("other", 1, limit)); wait != 0 {
		t.Errorf("waits %v although no token was used", wait)
	}
}
