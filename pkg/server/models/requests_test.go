// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/usage"
)

// TestStopping: a server that stops sends no further request, waits for the ends of those that are open, and no longer than the
// grace. What it cancels then has an end, too.
func TestStopping(t *testing.T) {
	t.Parallel()
	const grace = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		l := &notebook{ended: make(chan Ended, 2)}
		requests := NewRequests(l, nil)
		quick, slow := &speaker{parts: make(chan string)}, &speaker{parts: make(chan string)}
		var all []llm.Model
		for _, s := range []*speaker{quick, slow} {
			list := Metered([]llm.Candidate{{Provider: "p", Name: "m", Model: s}}, Metering{Meter: requests, Clock: clock.RealClock{}})
			all = append(all, list[0].Model)
			go func() { _, _ = list[0].Model.Generate(t.Context(), llm.Request{}, nil) }() // the meter notes the end
		}
		synctest.Wait()
		requests.Refuse()
		if _, err := all[0].Generate(t.Context(), llm.Request{}, nil); llm.ClassOf(err) != llm.ClassCanceled || !errors.As(err, new(*llm.Error)) {
			t.Errorf("a request of a server that stops: %v", err)
		}
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			close(quick.parts)
		}()
		requests.Settle(clock.RealClock{}, grace)
		if took := time.Since(began); took != grace {
			t.Errorf("an open request is waited for %v", took)
		}
		<-requests.Ended()
		if e := <-l.ended; e.Status != usage.StatusCompleted {
			t.Errorf("the answer that came in time: %+v", e)
		}
		if e := <-l.ended; e.Status != usage.StatusCancelled || e.Usage.Known() || e.Refused {
			t.Errorf("the answer that did not come: %+v", e)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		requests := NewRequests(&notebook{ended: make(chan Ended, 1)}, nil)
		m, err := requests.Start(t.Context(), Asked{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			m.End(Ended{})
		}()
		requests.Refuse()
		requests.Settle(clock.RealClock{}, grace)
		<-requests.Ended()
		if took := time.Since(began); took != time.Second {
			t.Errorf("nothing is open after %v", took)
		}
	})
}
