// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

// TestEndSoon: whoever asks sees the ends of requests that were reported before, however many are reported at a time, and they
// outlive the process after Drain. An end that cannot be recorded is reported.
func TestEndSoon(t *testing.T) {
	s := open(t)
	const callers, each = 8, 25
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := range each {
				c, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: fmt.Sprint(i), CounterID: fmt.Sprint(n), Provider: "p", Model: "m"})
				if err != nil {
					t.Error(err)
					return
				}
				c.EndSoon(usage.Outcome{Counts: usage.Counts{InputTokens: new(int64(i)), OutputTokens: new(int64(n + 1))}}, usage.StatusCompleted, func(err error) { t.Error(err) })
			}
		})
	}
	all.Wait()
	complete := func() (n int) {
		v, err := s.At(t.Context(), "ns", s.clock.Now().Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		for o, err := range v.Observations(usage.Period{}) {
			if err != nil || !o.Complete || fmt.Sprint(*o.InputTokens, *o.OutputTokens-1) != o.AttemptID+" "+o.CounterID {
				t.Errorf("an observation is %+v: %v", o, err)
			}
			n++
		}
		return n
	}
	if n := complete(); n != callers*each {
		t.Errorf("%d requests are complete", n)
	}
	s.restart(false)
	if n := complete(); n != callers*each {
		t.Errorf("%d requests are complete after a restart", n)
	}
	c, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: "9", CounterID: "1", Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	l := s.Ledger
	s.restart(false)
	var failed atomic.Int32
	c.EndSoon(usage.Outcome{}, usage.StatusCompleted, func(error) { failed.Add(1) })
	if l.Drain(); failed.Load() != 1 {
		t.Error("an end that could not be recorded was not reported")
	}
}

// TestEndsGoWithTheNextStart: the end of a request is in the commit of the next start, and on disk when that returns. Without
// another start it is recorded soon.
func TestEndsGoWithTheNextStart(t *testing.T) {
	s := open(t)
	begin := func(id string) *ledger.Call {
		c, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: id, Provider: "p", Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *ledger.Call) {
		c.EndSoon(usage.Outcome{Counts: usage.Counts{InputTokens: new(int64), OutputTokens: new(int64(1))}}, usage.StatusCompleted, func(error) {}) // that of 2 fails after the crash
	}
	complete := func(want string) {
		t.Helper()
		s.restart(false) // without Drain, as in a crash
		v, err := s.At(t.Context(), "ns", s.clock.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for o, err := range v.Observations(usage.Period{}) {
			if err != nil {
				t.Fatal(err)
			}
			if o.Complete {
				got += o.AttemptID
			}
		}
		if got != want {
			t.Errorf("the requests %s are complete, want %s", got, want)
		}
	}
	end(begin("1"))
	end(begin("2"))
	complete("1")
	end(begin("3"))
	s.clock.Step(time.Second)
	s.Drain() // waits for the commit that has begun
	complete("13")
}
