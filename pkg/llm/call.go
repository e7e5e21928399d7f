// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"
)

// Candidate is a model that may answer a request.
type Candidate struct {
	// Provider is the name for events, for example the Provider object's.
	Provider string
	// Name is the vendor's name of the model; it becomes Request.Model.
	Name  string
	Model Model
	// Drain is how long an answer is read on after its caller has left, so that its usage is known; 0 for not at all. Call does not
	// use it.
	Drain time.Duration
	// CoolingUntil is until when the candidate is asked last because of what other runs met; zero if there is nothing.
	// An answer in this run ends it earlier.
	CoolingUntil time.Time
}

// Attempt is one request to one candidate.
type Attempt struct {
	// Number counts the attempts of one Call over all candidates, from 1.
	Number   int
	Provider string
	Model    string
	Started  time.Time
	// Duration, Response and Err are set when the attempt has ended. Response is complete if Err
	// is nil.
	Duration time.Duration
	Response Response
	Err      error
	// RetryIn is the pause until the next attempt at the same candidate; 0 if there is none.
	RetryIn time.Duration
}

// Observer has callbacks before and after every attempt, so that usage and failures of each one
// are recorded. Any of them may be nil.
type Observer struct {
	Started func(Attempt)
	Ended   func(Attempt)
	// Part receives each piece of an answer. After a failed attempt, the parts of the next attempt
	// begin the answer again.
	Part func(Part)
}

// Options are the parts of a Call that do not change between requests.
type Options struct {
	// Candidates are asked in order; at least one.
	Candidates []Candidate
	Policy     Policy
	Clock      clock.Clock
	Observer   Observer
	// Begin is called before every attempt and may wait. An error means that the request must not be sent; it ends
	// the Call. Nil lets every attempt begin at once.
	Begin func(ctx context.Context, a Attempt) error
	// Cooling remembers which candidates failed in earlier Calls; nil to remember nothing.
	Cooling *Cooling
}

// ErrNoCandidate is returned by Call if there is no model to ask.
var ErrNoCandidate = errors.New("no model is configured")

// Call gets an answer: it tries the first candidate as often as the policy says, then the next
// one. Candidates that failed a short while ago are asked last. An ended context or a
// conversation that is too long ends it at once, because another attempt cannot help. The error
// is that of the last attempt, or of Begin.
func Call(ctx context.Context, o Options, req Request) (Response, error) {
	if len(o.Candidates) == 0 {
		return Response{}, ErrNoCandidate
	}
	c := call{o: o, req: req}
	var (
		resp Response
		err  error
	)
	o.Cooling.look(ctx, o.Candidates, o.Clock.Now())
	for _, i := range o.Cooling.order(o.Candidates, o.Clock.Now()) {
		resp, err = c.try(ctx, o.Candidates[i])
		o.Cooling.note(i, err, o.Clock.Now())
		class := ClassOf(err)
		if err == nil || c.barred || class == ClassCanceled || class == ClassContextTooLong {
			return resp, err
		}
	}
	return resp, err
}

// call is the state of one Call.
type call struct {
	o        Options
	req      Request
	attempts int
	// barred is set if Begin refused an attempt.
	barred bool
}

// try makes attempts at one candidate until one succeeds or the policy allows no more.
func (c *call) try(ctx context.Context, m Candidate) (Response, error) {
	for n := 1; ; n++ {
		a, err := c.attempt(ctx, m)
		if err != nil {
			return Response{}, err
		}
		again := false
		if a.Err != nil {
			a.RetryIn, again = c.o.Policy.Next(n, a.Err)
			if !again {
				a.RetryIn = 0
			}
		}
		if f := c.o.Observer.Ended; f != nil {
			f(a)
		}
		if !again {
			return a.Response, a.Err
		}
		if err := pause(ctx, c.o.Clock, a.RetryIn); err != nil {
			return a.Response, err
		}
	}
}

// attempt makes one attempt. The error is that of Begin.
func (c *call) attempt(ctx context.Context, m Candidate) (Attempt, error) {
	c.attempts++
	a := Attempt{Number: c.attempts, Provider: m.Provider, Model: m.Name}
	if f := c.o.Begin; f != nil {
		if err := f(ctx, a); err != nil {
			c.barred = true
			if ctx.Err() != nil {
				err = canceled(ctx)
			}
			return a, err
		}
	}
	a.Started = c.o.Clock.Now()
	if f := c.o.Observer.Started; f != nil {
		f(a)
	}
	req := c.req
	req.Model = m.Name
	a.Response, a.Err = m.Model.Generate(ctx, req, c.o.Observer.Part)
	if a.Err != nil && ctx.Err() != nil {
		a.Err = canceled(ctx)
	}
	a.Duration = c.o.Clock.Since(a.Started)
	return a, nil
}

func pause(ctx context.Context, c clock.Clock, d time.Duration) error {
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return canceled(ctx)
	}
}

func canceled(ctx context.Context) error {
	return &Error{Class: ClassCanceled, Message: "the run was stopped", Err: ctx.Err()}
}
