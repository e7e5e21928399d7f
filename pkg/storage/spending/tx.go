// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"encoding/json"
	"maps"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// tx is what one commit changes. It runs on the commit leader. Nothing changes before write.
type tx struct {
	s        *Store
	now      time.Time
	accounts map[accountID]*budget.Account // nil: removed
	open     map[requestID]*reservation    // nil: no longer open
	warnings []Warning
	silent   bool // nobody would get a warning, so the next request that ends gives it
}

// Warning reports that an account has reached a percentage of its limit for the first time in its window.
type Warning struct {
	budget.Charge

	Percent int32
	Spent   int64
	// Window is when the window began, and Renews when it ends.
	Window, Renews time.Time
}

func (s *Store) begin(now time.Time) *tx {
	return &tx{s: s, now: now, accounts: map[accountID]*budget.Account{}, open: map[requestID]*reservation{}}
}

// account returns an account as of now; false if it was removed or never existed.
func (t *tx) account(id accountID) (budget.Account, bool) {
	if a, ok := t.accounts[id]; ok {
		if a == nil {
			return budget.Account{}, false
		}
		return *a, true
	}
	a, ok := t.s.accounts[id]
	return a, ok
}

func (t *tx) reservation(id requestID) (reservation, bool) {
	if r, ok := t.open[id]; ok {
		if r == nil {
			return reservation{}, false
		}
		return *r, true
	}
	r, ok := t.s.open[id]
	return r, ok
}

// reserve opens a request in all of its accounts; the error is a *budget.ExhaustedError or a *budget.UnpricedError. An
// open request of the same name is spent as a whole: nobody reported its end, and beginning it again gives nothing back.
func (t *tx) reserve(id requestID, r reservation) error {
	t.settle(id, nil)
	if len(r.Charges) == 0 {
		return nil
	}
	for _, c := range r.Charges {
		n, err := r.In(c)
		if err != nil {
			return err
		}
		key := accountID{c.Budget, c.Identity}
		a, _ := t.account(key)
		if a, err = a.In(c, t.now).Reserve(c, n); err != nil {
			return err
		}
		t.accounts[key] = &a
	}
	t.open[id] = &r
	return nil
}

// settle ends a request by what is known of its end; nil if that is nothing, which spends all of it. It reports false if the
// request is not open.
func (t *tx) settle(id requestID, end *usage.Outcome) bool {
	r, ok := t.reservation(id)
	if !ok {
		return false
	}
	if used := r.Used(end); r.Given.IsZero() {
		t.charge(r.Charges, r.Need, used, false)
	} else {
		t.correct(&r, used)
	}
	t.open[id] = nil
	return true
}

// correct charges what a request has used, all of whose reservation was spent before.
func (t *tx) correct(r *reservation, used budget.Need) {
	for _, c := range r.Charges {
		key := accountID{c.Budget, c.Identity}
		a, ok := t.account(key)
		given, err := r.In(c)
		if !ok || a.Currency != c.Currency || err != nil {
			continue
		}
		n, err := used.In(c)
		if err != nil {
			continue // see charge
		}
		a = a.Of(c, t.now).Settle(0, n-given).Return(given-n, r.Given)
		t.accounts[key] = &a
	}
}

// charge spends what was used, of which some was reserved. Accounts of deleted budgets, and of those that count in another
// unit by now, are left out. fresh makes accounts that do not exist yet.
func (t *tx) charge(charges []budget.Charge, reserved, used budget.Need, fresh bool) {
	for _, c := range charges {
		key := accountID{c.Budget, c.Identity}
		a, ok := t.account(key)
		if !fresh && (!ok || a.Currency != c.Currency) {
			continue
		}
		n, err := used.In(c)
		if err != nil {
			continue // nobody knows what it cost: its start was refused, or the price was removed before a late end
		}
		held, err := reserved.In(c)
		if err != nil {
			held = 0 // nothing was reserved
		}
		a = a.Of(c, t.now).Settle(held, n)
		var percent int32
		if !t.silent {
			a, percent = a.Warn(c)
		}
		if percent > 0 {
			t.warnings = append(t.warnings, Warning{Charge: c, Percent: percent, Spent: a.Spent, Window: a.Start, Renews: a.End})
		}
		t.accounts[key] = &a
	}
}

// forever is later than each attempt.
const forever = math.MaxInt64

// longest is longer than every window: the window of a budget may have become longer since its last request.
const longest = 32 * 24 * time.Hour

// giveUp spends the open requests of an owner that began before an attempt as a whole: nobody knows what they used. They can still
// end, unless the attempt is forever.
func (t *tx) giveUp(owner types.UID, before int64) {
	for call := range t.s.calls[owner] {
		t.giveUpOne(requestID{owner, call}, before)
	}
	for id := range maps.Clone(t.open) {
		if id.owner == owner {
			t.giveUpOne(id, before)
		}
	}
}

func (t *tx) giveUpOne(id requestID, before int64) {
	r, ok := t.reservation(id)
	if !ok || r.Attempt >= before {
		return
	}
	if r.Given.IsZero() {
		t.silent = true
		t.charge(r.Charges, r.Need, r.Need, false)
		t.silent = false
	}
	if r.Given = t.now; before == forever {
		t.open[id] = nil
		return
	}
	t.open[id] = &r
}

// prune removes accounts whose window is over and in which nothing is reserved.
func (t *tx) prune() {
	for id := range t.s.accounts {
		if a, ok := t.account(id); ok && a.Reserved == 0 && !a.End.After(t.now) && a.Start.Before(t.now.Add(-longest)) {
			t.accounts[id] = nil
		}
	}
}

// write writes the rows to the batch and makes them the state of the next commit.
func (t *tx) write(b engine.Batch) error {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range t.accounts {
		if a == nil {
			delete(s.accounts, id)
		} else {
			s.accounts[id] = *a
		}
		if err := put(b, id.key(), a == nil, a); err != nil {
			return err
		}
	}
	for id, r := range t.open {
		if _, was := s.open[id]; r == nil && !was {
			continue
		}
		s.note(id, r)
		if err := put(b, id.key(), r == nil, r); err != nil {
			return err
		}
	}
	return nil
}

func put(b engine.Batch, key []byte, remove bool, v any) error {
	if remove {
		return b.Delete(key)
	}
	row, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Set(key, row)
}

// part is a change of its own.
type part struct {
	s    *Store
	run  func(*tx) error
	done func(*tx) // may be nil
}

var _ engine.Part = (*part)(nil)

// Check runs the change and forgets it.
func (p *part) Check() error { return p.run(p.s.begin(p.s.clock.Now())) }

// Write runs the change again, because another part of the commit may have changed the same accounts.
func (p *part) Write(b engine.Batch) error {
	t := p.s.begin(p.s.clock.Now())
	if err := p.run(t); err != nil {
		return err
	}
	if p.done != nil {
		p.done(t)
	}
	return t.write(b)
}

// Abandon does nothing, because Check changed nothing.
func (*part) Abandon() {}

// Publish does nothing: accounts are shown as soon as they are sequenced.
func (*part) Publish() {}
