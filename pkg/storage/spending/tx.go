// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"encoding/json"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
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

// reserve opens a request in all of its accounts; the error is a *budget.ExhaustedError. An open request of the same name
// is of an earlier attempt and comes back.
func (t *tx) reserve(id requestID, charges []budget.Charge, tokens int64) error {
	t.settle(id, 0)
	if len(charges) == 0 {
		return nil
	}
	for _, c := range charges {
		key := accountID{c.Budget, c.Identity}
		a, _ := t.account(key)
		a, err := a.At(c.Window, t.now).Reserve(c, tokens)
		if err != nil {
			return err
		}
		t.accounts[key] = &a
	}
	t.open[id] = &reservation{Charges: charges, Tokens: tokens}
	return nil
}

// settle ends a request that has used some tokens. It reports false if the request is not open.
func (t *tx) settle(id requestID, used int64) bool {
	r, ok := t.reservation(id)
	if !ok {
		return false
	}
	t.charge(r.Charges, r.Tokens, used, false)
	t.open[id] = nil
	return true
}

// charge spends tokens, of which some were reserved. Accounts of deleted budgets are left out. fresh makes accounts that
// do not exist yet.
func (t *tx) charge(charges []budget.Charge, reserved, used int64, fresh bool) {
	for _, c := range charges {
		key := accountID{c.Budget, c.Identity}
		a, ok := t.account(key)
		if !ok && !fresh {
			continue
		}
		a = a.At(c.Window, t.now).Settle(reserved, used)
		var percent int32
		if a, percent = a.Warn(c); percent > 0 {
			t.warnings = append(t.warnings, Warning{Charge: c, Percent: percent, Spent: a.Spent, Window: a.Start, Renews: a.End})
		}
		t.accounts[key] = &a
	}
}

// release ends all open requests of an owner. Nothing is known of what they used.
func (t *tx) release(owner types.UID) {
	for call := range t.s.calls[owner] {
		t.settle(requestID{owner, call}, 0)
	}
	for id, r := range maps.Clone(t.open) {
		if id.owner == owner && r != nil {
			t.settle(id, 0)
		}
	}
}

// prune removes accounts whose window is over and in which nothing is reserved.
func (t *tx) prune() {
	for id := range t.s.accounts {
		if a, ok := t.account(id); ok && a.Reserved == 0 && !a.End.After(t.now) {
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
