// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// stepClock is a fake clock that advances by itself for each wait, and records its length.
type stepClock struct {
	*clocktesting.FakeClock
	waits []time.Duration
}

func (c *stepClock) NewTimer(d time.Duration) clock.Timer {
	c.waits = append(c.waits, d)
	t := c.FakeClock.NewTimer(d)
	c.Step(d)
	return t
}

func candidate(t *testing.T, name, text string) llm.Candidate {
	t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(script.New(s, t.Output()))
	t.Cleanup(srv.Close)
	model, err := openai.New(openai.Config{APIKey: "k", BaseURL: srv.URL + "/v1", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return llm.Candidate{Provider: name, Name: name + "-model", Model: model}
}

// TestCall runs each rule against a real server: which failures are tried
// again, after what pause, and when the next candidate is asked.
func TestCall(t *testing.T) {
	const ok = "- {reply: {text: fine}}"
	tests := map[string]struct {
		scripts []string
		want    []string
		waits   []time.Duration
	}{
		"first time": {
			[]string{ok}, []string{"p0: fine"}, nil,
		},
		"server error is tried again with growing pauses": {
			[]string{"- {times: 3, fault: {status: 500}}\n" + ok},
			[]string{"p0: server_error", "p0: server_error", "p0: server_error", "p0: fine"},
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second},
		},
		"no more than four attempts": {
			[]string{"- {fault: {status: 503}}"},
			[]string{"p0: server_error", "p0: server_error", "p0: server_error", "p0: server_error"},
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second},
		},
		"Retry-After is honoured exactly": {
			[]string{"- {times: 1, fault: {status: 429, retryAfter: '17'}}\n" + ok},
			[]string{"p0: rate_limited", "p0: fine"},
			[]time.Duration{17 * time.Second},
		},
		"Retry-After beyond the bound ends it": {
			[]string{"- {fault: {status: 429, retryAfter: '3600'}}"},
			[]string{"p0: rate_limited"},
			nil,
		},
		"cut stream is tried again": {
			[]string{"- {times: 1, reply: {text: half of it}, fault: {cutAfterBytes: 300}}\n" + ok},
			[]string{"p0: cut_stream", "p0: fine"},
			[]time.Duration{500 * time.Millisecond},
		},
		"malformed answer is tried again": {
			[]string{"- {times: 1, fault: {notAStream: true}}\n" + ok},
			[]string{"p0: malformed_response", "p0: fine"},
			[]time.Duration{500 * time.Millisecond},
		},
		"bad key is not tried again": {
			[]string{"- {fault: {status: 401}}"}, []string{"p0: auth"}, nil,
		},
		"no credit is not tried again": {
			[]string{"- {fault: {status: 429, code: insufficient_quota}}"}, []string{"p0: quota_exhausted"}, nil,
		},
		"bad request is not tried again": {
			[]string{"- {fault: {status: 400}}"}, []string{"p0: invalid_request"}, nil,
		},
		"fallback after a bad key": {
			[]string{"- {fault: {status: 401}}", ok}, []string{"p0: auth", "p1: fine"}, nil,
		},
		"fallback after all attempts": {
			[]string{"- {fault: {status: 429, retryAfter: '600'}}", "- {fault: {status: 400}}", ok},
			[]string{"p0: rate_limited", "p1: invalid_request", "p2: fine"},
			nil,
		},
		"no fallback for a conversation that is too long": {
			[]string{"- {fault: {status: 400, code: context_length_exceeded}}", ok}, []string{"p0: context_too_long"}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &stepClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
			var got []string
			started := 0
			o := llm.Options{Clock: c, Policy: llm.Policy{Jitter: func() float64 { return 0 }}, Observer: llm.Observer{
				Started: func(a llm.Attempt) { started = a.Number },
				Ended: func(a llm.Attempt) {
					word := a.Response.Text
					if a.Err != nil {
						word = string(llm.ClassOf(a.Err))
					}
					got = append(got, a.Provider+": "+word)
					if a.Number != started || a.Number != len(got) || a.Model != a.Provider+"-model" {
						t.Errorf("attempt %+v after the start of %d", a, started)
					}
				},
			}}
			for i, s := range tt.scripts {
				o.Candidates = append(o.Candidates, candidate(t, fmt.Sprintf("p%d", i), "turns:\n"+s))
			}
			resp, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.waits, c.waits); diff != "" {
				t.Error(diff)
			}
			if (err == nil) != (resp.Text == "fine") {
				t.Errorf("%q, %v", resp.Text, err)
			}
		})
	}
}

// TestCooling: a candidate that failed is asked last by the next Calls, until a while has passed, and is never left
// out.
func TestCooling(t *testing.T) {
	c := &stepClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	var asked []string
	o := llm.Options{
		Clock: c, Cooling: &llm.Cooling{}, Policy: llm.Policy{MaxAttempts: 1},
		Candidates: []llm.Candidate{
			candidate(t, "p0", "turns: [{times: 1, fault: {status: 401}}, {times: 1, fault: {status: 529, retryAfter: '100'}}, {reply: {text: fine}}]"),
			candidate(t, "p1", "turns: [{times: 2, reply: {text: fine}}, {times: 1, fault: {status: 400}}, {reply: {text: fine}}]"),
		},
		Observer: llm.Observer{Started: func(a llm.Attempt) { asked = append(asked, a.Provider) }},
	}
	call := func(want ...string) {
		t.Helper()
		asked = nil
		if _, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	}
	call("p0", "p1") // p0 refused the key
	call("p1")
	c.Step(61 * time.Second)
	o.Candidates = slices.Clone(o.Candidates)
	asked = nil
	_, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}})
	if llm.ClassOf(err) != llm.ClassInvalidRequest || !slices.Equal(asked, []string{"p0", "p1"}) { // p0 is overloaded for 100 s
		t.Errorf("%v: %v", asked, err)
	}
	c.Step(90 * time.Second)
	call("p1") // what p1 refused says nothing about the next request
	c.Step(11 * time.Second)
	call("p0")
}

// TestCoolingOfOtherRuns: what other runs met counts from the first request on, and until this run gets an answer.
func TestCoolingOfOtherRuns(t *testing.T) {
	c := &stepClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	var asked []string
	o := llm.Options{
		Clock: c, Cooling: &llm.Cooling{}, Policy: llm.Policy{MaxAttempts: 1},
		Candidates: []llm.Candidate{
			candidate(t, "p0", "turns: [{reply: {text: fine}}]"),
			candidate(t, "p1", "turns: [{times: 1, reply: {text: fine}}, {times: 1, fault: {status: 503}}, {reply: {text: fine}}]"),
		},
		Observer: llm.Observer{Started: func(a llm.Attempt) { asked = append(asked, a.Provider) }},
	}
	o.Candidates[0].CoolingUntil = c.Now().Add(time.Minute)
	call := func(want ...string) {
		t.Helper()
		asked = nil
		if _, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	}
	call("p1")
	call("p1", "p0") // p1 fails, and p0 answers: it is not left out
	call("p0")       // the answer counts for more than what other runs met
	o.Cooling, o.Candidates[0].CoolingUntil = nil, c.Now().Add(time.Second)
	call("p1")
	c.Step(2 * time.Second)
	call("p0")
}

// TestCoolingIsReadAgain: a run that goes on learns what other runs met since it began, and that it is over.
func TestCoolingIsReadAgain(t *testing.T) {
	c := &stepClock{FakeClock: clocktesting.NewFakeClock(time.Unix(1, 0))}
	asked, looks, others := "", 0, make([]time.Time, 2)
	o := llm.Options{
		Clock: c, Cooling: &llm.Cooling{Look: func(context.Context) []time.Time { looks++; return slices.Clone(others) }},
		Candidates: []llm.Candidate{candidate(t, "p0", "turns: [{reply: {text: fine}}]"), candidate(t, "p1", "turns: [{reply: {text: fine}}]")},
		Observer:   llm.Observer{Started: func(a llm.Attempt) { asked = a.Provider }},
	}
	call := func(want string, wantLooks int) {
		t.Helper()
		if _, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}}); err != nil || asked != want || looks != wantLooks {
			t.Errorf("%s was asked after %d looks, want %s after %d; %v", asked, looks, want, wantLooks, err)
		}
	}
	call("p0", 0)
	others[0] = c.Now().Add(time.Hour)
	call("p0", 0) // a look costs requests, so it is not repeated at once
	c.Step(16 * time.Second)
	call("p1", 1)
	others[0] = time.Time{}
	c.Step(16 * time.Second)
	call("p0", 2)
	o.Candidates = o.Candidates[:1]
	c.Step(16 * time.Second)
	call("p0", 2) // there is no choice
}

// TestBegin: an attempt that may not begin ends the Call, without another candidate.
func TestBegin(t *testing.T) {
	stop, n := errors.New("not now"), 0
	o := llm.Options{
		Clock: clock.RealClock{}, Candidates: []llm.Candidate{candidate(t, "p0", "turns: [{fault: {status: 401}}]"), candidate(t, "p1", "turns: [{reply: {text: no}}]")},
		Begin: func(context.Context, llm.Attempt) error {
			if n++; n == 2 {
				return stop
			}
			return nil
		},
		Observer: llm.Observer{Started: func(a llm.Attempt) {
			if a.Provider != "p0" {
				t.Errorf("%s was asked", a.Provider)
			}
		}},
	}
	if _, err := llm.Call(t.Context(), o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}}); !errors.Is(err, stop) || n != 2 {
		t.Errorf("%v after %d", err, n)
	}
}

func TestCallWithoutCandidate(t *testing.T) {
	if _, err := llm.Call(t.Context(), llm.Options{}, llm.Request{}); !errors.Is(err, llm.ErrNoCandidate) {
		t.Errorf("got %v", err)
	}
}

// TestCancelEndsThePause stops a run between two attempts.
func TestCancelEndsThePause(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := llm.Options{
		Candidates: []llm.Candidate{candidate(t, "p0", "turns: [{fault: {status: 429, retryAfter: '90'}}]"), candidate(t, "p1", "turns: [{reply: {text: no}}]")},
		Clock:      clock.RealClock{},
		Observer:   llm.Observer{Ended: func(llm.Attempt) { cancel() }},
	}
	_, err := llm.Call(ctx, o, llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Text: "hi"}}})
	if llm.ClassOf(err) != llm.ClassCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPolicyBounds(t *testing.T) {
	p := llm.Policy{MaxAttempts: 100, Jitter: func() float64 { return 0.999 }}
	for n := 1; n < 100; n++ {
		pause, again := p.Next(n, &llm.Error{Class: llm.ClassServer})
		if !again || pause <= 0 || pause > 30*time.Second {
			t.Fatalf("attempt %d: %v, %v", n, pause, again)
		}
	}
	if _, again := p.Next(1, context.Canceled); again {
		t.Error("a stopped run is tried again")
	}
}
