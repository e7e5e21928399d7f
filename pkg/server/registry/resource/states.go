// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/object"
)

// StateLedger is the shape of entries that are appended, and then only change their state: deliveries, inbound events, effects. It is
// Kept with rules that hold whoever writes, by whatever subresource. The Spec of an entry never changes. Its Status has a state, which
// follows the table, and for work that somebody does on it a lease.
//
// In some states an entry is held: somebody works on it, and until the lease ends nobody else does. A worker takes the lease with a write
// of the status that has the resourceVersion that it read, so of two that try the store accepts one, and a worker that was late changes
// nothing any more. Without a resourceVersion the rules still refuse a second holder before the lease has ended. Whether a lease that
// ended may be taken over is in the table, as a transition from the held state to itself: where what was begun may have had its effect,
// there is none, and the entry goes to a state that says so.
//
// A list by status.state, which must be an indexed field, costs its page, and so does Stored.Due: what has a next attempt that is due,
// or a lease that ended. Entries that ended leave the store after Retention. Watches see each change once, as of everything that is kept.
type StateLedger[T Object] struct {
	// Kept has the hooks of the kind. PrepareForCreate sets the status of a new entry.
	Kept Kept[T]
	// States is the table.
	States States
	// Entry reads what the rules are about from an entry's status. What is due is found by the time as it is stored, so times must be
	// set as they are stored: in whole seconds for a metav1.Time (Rfc3339Copy).
	Entry func(obj T) Entry
	// Retention is how long an entry is kept after its last write in an ended state, in whole seconds; zero keeps it.
	Retention time.Duration
}

// States are the states of a StateLedger.
type States struct {
	// Initial are the states in which an entry may be appended.
	Initial []string
	// Table has all transitions; others are refused. A write that keeps the state needs none.
	Table []Transition
	// Held are the states in which somebody works on the entry.
	Held []string
	// Ended are the states in which nothing is left to do, unless somebody asks for it by a subresource.
	Ended []string
}

// Transition is a change of state.
type Transition struct {
	From, To string
	// Via is the subresource that alone makes the transition; empty for any writer of the status.
	Via string
}

// Entry is what the rules of a StateLedger are about.
type Entry struct {
	State string
	// Next is when the next attempt is due; zero if the entry waits for something else.
	Next time.Time
	// Holder names who works on the entry, and Until is when that lease ends. Both are set in held states only.
	Holder string
	Until  time.Time
}

// fieldState is the field that a StateLedger must have and index, and fieldDue its index of times. Nobody can select by the latter.
const fieldState, fieldDue = "status.state", "due"

// dueTime is how times are written in the index, so that they sort.
const dueTime = "2006-01-02T15:04:05.000000000Z"

func (s StateLedger[T]) storage(ctx context.Context, k *kind[T], paths map[string]rest.Storage) (parent[T], error) {
	var none parent[T]
	p := partsOf[T]()
	switch {
	case s.Entry == nil || p.spec == nil || p.status == nil || s.Kept.NoStatus:
		return none, errors.New("a ledger with states needs Entry, and a type with Spec and Status")
	case !slices.ContainsFunc(k.Fields, func(f Field[T]) bool { return f.Path == fieldState && f.Indexed }):
		return none, fmt.Errorf("a ledger with states needs the indexed field %s", fieldState)
	case s.Retention < 0 || s.Kept.TTL != 0:
		return none, errors.New("a ledger with states has a Retention, which is not negative, and no TTL")
	}
	if err := s.States.check(); err != nil {
		return none, err
	}
	kept := s.Kept
	kept.Frozen = append(slices.Clone(kept.Frozen), Frozen[T]{field.NewPath("spec"), func(obj T) any { return partOf(obj, p.spec).Interface() }})
	kept.validateNew = func(obj T) (errs field.ErrorList) {
		if state := s.Entry(obj).State; !slices.Contains(s.States.Initial, state) {
			errs = append(errs, field.NotSupported(field.NewPath("status", "state"), state, s.States.Initial))
		}
		return errs
	}
	kept.ValidateStatus = func(ctx context.Context, obj, old T) field.ErrorList {
		var errs field.ErrorList
		if err := s.States.move(s.Entry(old), s.Entry(obj), via(ctx), k.Clock.Now()); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status"), err.Error()))
		}
		if s.Kept.ValidateStatus != nil {
			errs = append(errs, s.Kept.ValidateStatus(ctx, obj, old)...)
		}
		return errs
	}
	kept.ttl = func(obj T) time.Duration {
		if slices.Contains(s.States.Ended, s.Entry(obj).State) {
			return s.Retention
		}
		return 0
	}
	kept.indexes = map[string]func(T) string{fieldDue: func(obj T) string { return s.States.due(s.Entry(obj)) }}
	stored, err := kept.storage(ctx, k, paths)
	if err != nil {
		return none, err
	}
	main, ok := paths[k.Resource.Resource].(*keptREST[T])
	if !ok {
		return none, fmt.Errorf("%T is not kept", paths[k.Resource.Resource])
	}
	stored.due = func(ctx context.Context, now time.Time, limit int) (due []T, err error) {
		found, err := object.UpTo(ctx, main.Storage.Storage, fieldDue, now.UTC().Format(dueTime), limit)
		for _, obj := range found {
			due = append(due, obj.(T))
		}
		return due, err
	}
	return stored, nil
}

// via returns the subresource through which a write came; "" for the status, and for the server itself.
func via(ctx context.Context) string {
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Subresource != statusPath {
		return info.Subresource
	}
	return ""
}

// check returns an error if the table contradicts itself.
func (s States) check() error {
	known := map[string]bool{}
	for _, state := range s.Initial {
		known[state] = true
	}
	for _, t := range s.Table {
		known[t.From], known[t.To] = true, true
		if t.From == t.To && !slices.Contains(s.Held, t.From) {
			return fmt.Errorf("states: %s to itself: only a held state is taken over", t.From)
		}
		if slices.Contains(s.Ended, t.From) && t.Via == "" {
			return fmt.Errorf("states: %s to %s: an ended state is left by a subresource alone", t.From, t.To)
		}
	}
	for _, state := range slices.Concat(s.Held, s.Ended) {
		if !known[state] || state == "" {
			return fmt.Errorf("states: %q is held or ended and not in the table", state)
		}
	}
	if len(s.Initial) == 0 || known[""] || slices.ContainsFunc(s.Held, func(state string) bool { return slices.Contains(s.Ended, state) || slices.Contains(s.Initial, state) }) {
		return errors.New("states: an initial state is needed, none is empty, and a held one is neither initial nor ended")
	}
	return nil
}

// move returns an error if an entry may not change from was to is.
func (s States) move(was, is Entry, via string, now time.Time) error {
	held := slices.Contains(s.Held, is.State)
	switch leased := held && was.State == is.State && was.Holder != is.Holder; {
	case was.State != is.State || leased && !now.Before(was.Until):
		if err := s.transition(was.State, is.State, via); err != nil {
			return err
		}
	case leased:
		return fmt.Errorf("%q holds the entry until %s", was.Holder, was.Until.UTC().Format(time.RFC3339))
	}
	switch unchanged := was.State == is.State && was.Holder == is.Holder && was.Until.Equal(is.Until); {
	case !held && (is.Holder != "" || !is.Until.IsZero()):
		return fmt.Errorf("an entry in state %q has no lease", is.State)
	case held && (is.Holder == "" || !unchanged && !is.Until.After(now)):
		return fmt.Errorf("an entry in state %q needs a holder and a lease that ends in the future", is.State)
	}
	return nil
}

// transition returns an error if the table lacks a transition.
func (s States) transition(from, to, via string) error {
	var may []string
	for _, t := range s.Table {
		if t.From != from {
			continue
		}
		if t.To == to && (t.Via == "" || t.Via == via) {
			return nil
		}
		if t.Via != "" {
			t.To += " (by the subresource " + t.Via + ")"
		}
		may = append(may, t.To)
	}
	if may == nil {
		may = []string{"none"}
	}
	return fmt.Errorf("state %q cannot become %q by this request; allowed: %s", from, to, strings.Join(may, ", "))
}

// due returns the value of an entry in the index of times; "" if no time makes it due.
func (s States) due(e Entry) string {
	at := e.Next
	switch {
	case slices.Contains(s.Ended, e.State):
		return ""
	case slices.Contains(s.Held, e.State):
		at = e.Until
	}
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(dueTime)
}

// indexers returns what the store indexes: the indexed fields of the kind, and more.
func (k *kind[T]) indexers(more map[string]func(T) string) storage.IndexerFuncs {
	all := storage.IndexerFuncs{}
	add := func(name string, value func(T) string) {
		all[name] = func(obj runtime.Object) string { return value(obj.(T)) }
	}
	for _, f := range k.Fields {
		if f.Indexed {
			add(f.Path, f.Value)
		}
	}
	for name, value := range more {
		add(name, value)
	}
	return all
}
