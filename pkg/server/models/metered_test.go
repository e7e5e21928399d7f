// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/usage"
)

// notebook notes what it is told.
type notebook struct {
	refuse error
	mu     sync.Mutex // guards asked
	asked  []Asked
	ended  chan Ended
}

func (l *notebook) Start(_ context.Context, a Asked) (Measurement, error) {
	if l.refuse != nil {
		return nil, l.refuse
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, a)
	return l, nil
}

func (l *notebook) End(e Ended) { l.ended <- e }

// speaker is a model that answers in parts, and waits between them.
type speaker struct {
	parts chan string // closed at the end of the answer
	err   error
}

func (s *speaker) Generate(ctx context.Context, _ llm.Request, parts func(llm.Part)) (llm.Response, error) {
	for {
		select {
		case p, ok := <-s.parts:
			if !ok {
				return llm.Response{Usage: llm.Usage{InputTokens: new(int64(7)), OutputTokens: new(int64(3))}}, s.err
			}
			parts(llm.Part{Text: p})
		case <-ctx.Done():
			return llm.Response{}, &llm.Error{Class: llm.ClassCanceled, Err: ctx.Err()}
		}
	}
}

func measured(t *testing.T, s *speaker) (llm.Model, *notebook, *clocktesting.FakeClock) {
	t.Helper()
	l, c := &notebook{ended: make(chan Ended, 1)}, clocktesting.NewFakeClock(time.Unix(0, 0))
	list := Metered([]llm.Candidate{{Provider: "p", Name: "m", Model: s, Drain: DefaultDrain}}, Metering{Meter: l, Clock: c, Asked: Asked{Namespace: "ns", ID: "turn"}})
	return list[0].Model, l, c
}

func TestMetered(t *testing.T) {
	s := &speaker{parts: make(chan string, 2)}
	m, l, _ := measured(t, s)
	s.parts <- "a"
	s.parts <- "b"
	close(s.parts)
	text := ""
	resp, err := m.Generate(t.Context(), llm.Request{Model: "m", MaxTokens: 9}, func(p llm.Part) { text += p.Text })
	if err != nil || text != "ab" || !resp.Usage.Known() {
		t.Fatalf("got %q, %+v, %v", text, resp, err)
	}
	if a := l.asked[0]; a.Namespace != "ns" || a.Provider != "p" || a.Model != "m" || a.ID != "turn" || a.Candidate != 1 || a.MaxTokens != 9 {
		t.Errorf("the start says %+v", a)
	}
	if e := <-l.ended; e.Status != usage.StatusCompleted || *e.Usage.InputTokens != 7 {
		t.Errorf("the end says %+v", e)
	}
}

// TestMeteredCallerLeaves: the caller is answered at once, and the usage is recorded when the answer is complete.
func TestMeteredCallerLeaves(t *testing.T) {
	s := &speaker{parts: make(chan string)}
	m, l, _ := measured(t, s)
	ctx, leave := context.WithCancel(t.Context())
	go func() { s.parts <- "a" }()
	_, err := m.Generate(ctx, llm.Request{}, func(llm.Part) { leave() })
	if llm.ClassOf(err) != llm.ClassCanceled {
		t.Fatalf("the caller that left got %v", err)
	}
	s.parts <- "b"
	close(s.parts)
	if e := <-l.ended; e.Status != usage.StatusCompleted || *e.Usage.OutputTokens != 3 {
		t.Errorf("the end says %+v", e)
	}
}

// TestMeteredDrainEnds: an answer without an end is given up, and its usage is unknown.
func TestMeteredDrainEnds(t *testing.T) {
	s := &speaker{parts: make(chan string)}
	m, l, c := measured(t, s)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := m.Generate(ctx, llm.Request{}, nil); llm.ClassOf(err) != llm.ClassCanceled {
		t.Fatalf("the caller that left got %v", err)
	}
	c.Step(DefaultDrain)
	if e := <-l.ended; e.Status != usage.StatusCancelled || e.Usage.InputTokens != nil {
		t.Errorf("the end says %+v", e)
	}
}

// TestDrain: how long an answer is read on is the Provider's to say, and else the server's.
func TestDrain(t *testing.T) {
	t.Parallel()
	m := &Models{o: Options{Drain: DefaultDrain}}
	for seconds, want := range map[*int32]time.Duration{nil: DefaultDrain, new(int32(0)): 0, new(int32(90)): 90 * time.Second, new(int32(7000)): MaxDrain} {
		c := Candidate{Provider: &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{DrainSeconds: seconds}}, models: m}
		if got := c.Drain(); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}

func TestMeteredRefused(t *testing.T) {
	m, l, _ := measured(t, &speaker{})
	for class, err := range map[llm.Class]error{
		llm.ClassServer: errors.New("disk"), llm.ClassQuota: apierrors.NewTooManyRequests("the budget is spent", 1),
	} {
		l.refuse = err
		if _, err := m.Generate(t.Context(), llm.Request{}, nil); llm.ClassOf(err) != class {
			t.Errorf("got %v, want %s", err, class)
		}
	}
}

func TestEndOf(t *testing.T) {
	for _, c := range []struct {
		err     error
		status  usage.Status
		refused bool
	}{
		{nil, usage.StatusCompleted, false},
		{&llm.Error{Class: llm.ClassCanceled}, usage.StatusCancelled, false},
		{&llm.Error{Class: llm.ClassInvalidRequest}, usage.StatusFailed, true},
		{&llm.Error{Class: llm.ClassUnreachable}, usage.StatusFailed, false},
		{&llm.Error{Class: llm.ClassUnreachable, Unsent: true}, usage.StatusFailed, true},
		{&llm.Error{Class: llm.ClassServer}, usage.StatusFailed, false},
	} {
		if e := EndOf(llm.Usage{}, c.err); e.Status != c.status || e.Refused != c.refused || e.Usage.Known() {
			t.Errorf("%v gives %+v", c.err, e)
		}
	}
}

// Requests that are asked after fallbacks that were passed over have later numbers.
func TestPassedOver(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l := &notebook{ended: make(chan Ended, 1)}
	list := Metered([]llm.Candidate{{Provider: "p", Name: "m", Model: answers{}}}, Metering{Meter: l, Clock: c, Asked: Asked{Candidate: 2}})
	if _, err := list[0].Model.Generate(t.Context(), llm.Request{}, nil); err != nil || l.asked[0].Candidate != 3 {
		t.Errorf("the request has number %d, %v", l.asked[0].Candidate, err)
	}
}

// answers is a model that answers at once.
type answers struct{}

func (answers) Generate(context.Context, llm.Request, func(llm.Part)) (llm.Response, error) {
	return llm.Response{}, nil
}
