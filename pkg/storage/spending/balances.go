// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Balance is what is known of one account.
type Balance struct {
	// Identity is empty if the budget has only one account.
	Identity string
	budget.Account
}

// Balances returns the accounts of budgets, in no order. Their windows may be over; see budget.Account.At.
func (s *Store) Balances(of ...types.UID) map[types.UID][]Balance {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[types.UID][]Balance{}
	for _, id := range of {
		all[id] = nil
	}
	for id, a := range s.accounts {
		if _, ok := all[id.budget]; ok {
			all[id.budget] = append(all[id.budget], Balance{id.identity, a})
		}
	}
	return all
}

// Forget removes the accounts of a budget that was deleted.
func (s *Store) Forget(id types.UID) error {
	return s.engine.Commit(engine.Join(engine.Free, &part{s: s, run: func(t *tx) error {
		for a := range s.accounts {
			if a.budget == id {
				t.accounts[a] = nil
			}
		}
		return nil
	}}))
}

// Release spends what a task has reserved, because nobody will report what it used. It is for a task that no longer exists.
func (s *Store) Release(task types.UID) error {
	s.mu.Lock()
	none := len(s.calls[task]) == 0
	s.mu.Unlock()
	if none {
		return nil
	}
	return s.engine.Commit(engine.Join(engine.Free, &part{s: s, run: func(t *tx) error {
		t.giveUp(task, forever)
		return nil
	}}))
}
