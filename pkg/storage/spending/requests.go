// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"encoding/json"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/usage"
)

// Claim is what a request of a run counts towards. It is the note of the append that stores the start or the end of the
// request; see eventlog.WithNote.
type Claim struct {
	Charges []budget.Charge
	// Need is what the request may use at most.
	Need budget.Need
	// Used is what it used, of an end; nil if nobody knows.
	Used *usage.Outcome
}

// Claims are the claims of an append by the calls of its events; see Call. Warnings is set once the append is committed.
type Claims struct {
	Of map[string]Claim
	// Attempt is the attempt of the task, as the server recorded it.
	Attempt  int64
	Warnings []Warning
}

// Call returns what identifies a model request within an attempt, by an event about it.
func Call(e *v1alpha1.ExecutionEvent) string {
	var c struct{ Iteration, Attempt int64 }
	if e.Content != nil {
		_ = json.Unmarshal(e.Content.Raw, &c) // content of another form has none of these
	}
	return fmt.Sprintf("%d/%d", c.Iteration, c.Attempt)
}

var _ eventlog.Projection = (*Store)(nil)

// Admit refuses an append with the start of a request that does not fit; the error is a *budget.ExhaustedError or a
// *budget.UnpricedError.
func (s *Store) Admit(c *eventlog.Change) error {
	t := s.begin(c.At)
	return t.follow(c)
}

// Project writes what the append changes.
func (s *Store) Project(b engine.Batch, c *eventlog.Change) error {
	t := s.begin(c.At)
	if err := t.follow(c); err != nil {
		return err
	}
	if claims, ok := eventlog.NoteOf[*Claims](c); ok {
		claims.Warnings = t.warnings
	}
	return t.write(b)
}

// follow applies the events of an append.
func (t *tx) follow(c *eventlog.Change) error {
	claims, _ := eventlog.NoteOf[*Claims](c)
	owner := c.Stream.UID
	for a := range c.Appended() {
		switch e := a.Event; {
		case e.Type == v1alpha1.EventModelRequestStarted && claims != nil:
			id := requestID{owner, Call(e)}
			c := claims.Of[id.call]
			if err := t.reserve(id, reservation{Charges: c.Charges, Attempt: claims.Attempt, Need: c.Need}); err != nil {
				return err
			}
		case e.Type == v1alpha1.EventModelRequestCompleted, e.Type == v1alpha1.EventModelRequestFailed:
			t.end(requestID{owner, Call(e)}, claims)
		case e.Type == v1alpha1.EventTaskStarted:
			t.giveUp(owner, attemptOf(e))
		case event.Terminal(e.Type):
			t.giveUp(owner, forever)
		}
	}
	return nil
}

// end settles the request of a run whose end is stored. One that is not open, because it came back or was never begun, is
// spent now.
func (t *tx) end(id requestID, claims *Claims) {
	var c Claim
	if claims != nil {
		c = claims.Of[id.call]
	}
	if used := c.Need.Used(c.Used); !t.settle(id, c.Used) && used.Tokens > 0 {
		t.charge(c.Charges, budget.Need{Price: used.Price}, used, true)
	}
}

// attemptOf returns the attempt that a controller has started. Workers cannot write such events. Those that workers write
// about their runs give nothing back, because a worker could append them while its requests go on.
func attemptOf(e *v1alpha1.ExecutionEvent) int64 {
	var c struct{ Attempt int64 }
	if e.Content != nil {
		_ = json.Unmarshal(e.Content.Raw, &c) // content of another form names no attempt
	}
	return c.Attempt
}

// Begin returns the part of a commit that reserves what a request of this server may use; its error is a
// *budget.ExhaustedError or a *budget.UnpricedError. call identifies the request among all of this server.
func (s *Store) Begin(call string, charges []budget.Charge, need budget.Need) engine.Part {
	return &part{s: s, run: func(t *tx) error {
		return t.reserve(requestID{server, call}, reservation{Charges: charges, Need: need})
	}}
}

// End returns the part of a commit that settles a request of this server: used is how it ended, nil if nobody knows.
// warn, which may be nil, is called on the commit leader with what the request made reach.
func (s *Store) End(call string, used *usage.Outcome, warn func([]Warning)) engine.Part {
	return &part{s: s, run: func(t *tx) error {
		t.settle(requestID{server, call}, used)
		return nil
	}, done: func(t *tx) {
		if warn != nil && len(t.warnings) > 0 {
			warn(t.warnings)
		}
	}}
}

// Commit commits parts of this store and of others of its engine, all or none.
func (s *Store) Commit(need engine.Need, parts ...engine.Part) error {
	return s.engine.Commit(engine.Join(need, parts...))
}
