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

// nothing is the usage of a request that used nothing, as far as anybody will ever know.
var nothing = &usage.Counts{InputTokens: new(int64), OutputTokens: new(int64)}

// settle ends a request that has used something; nil if nobody knows how much, which spends all of it. It reports false
// if the request is not open.
func (t *tx) settle(id requestID, used *usage.Counts) bool {
	r, ok := t.reservation(id)
	if !ok {
		return false
	}
	t.charge(r.Charges, r.Need, r.Used(used), false)
	t.open[id] = nil
	return true
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
		if a, percent = a.Warn(c); percent > 0 {
			t.warnings = append(t.warnings, Warning{Charge: c, Percent: percent, Spent: a.Spent, Window: a.Start, Renews: a.End})
		}
		t.accounts[key] = &a
	}
}

// forever is later than each attempt.
const forever = math.MaxInt64

// longest is longer than every window: the window of a budget may have become longer since its last request.
const longest = 32 * 24 * time.Hour

// release ends the open requests of an owner that began before an attempt. Nothing is known of what they used.
func (t *tx) release(owner types.UID, before int64) {
	for call := range t.s.calls[owner] {
		t.releaseOne(requestID{owner, call}, before)
	}
	for id := range maps.Clone(t.open) {
		if id.owner == owner {
			t.releaseOne(id, before)
		}
	}
}

func (t *tx) releaseOne(id requestID, before int64) {
	if r, ok := t.reservation(id); ok && r.Attempt < before {
		t.settle(id, nothing)
	}
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
