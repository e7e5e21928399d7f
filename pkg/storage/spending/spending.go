// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spending keeps the accounts of budgets: what is spent and what is reserved. Every change is made by the commit
// leader, in the commit that stores the start or the end of a model request, so accounts are exact after a crash, and a
// request is reserved in all of its accounts or in none.
//
//	q   71 'a' | budget UID | 00 | identity  ->  JSON of budget.Account
//	    71 'r' | owner | 00 | call           ->  JSON of a reservation
//
// The owner of a reservation is the task whose run makes the request, or this server, which makes those of chats and of the
// vendors' APIs. What becomes of a reservation:
//
//   - The request ends with a report of what it used: that is spent, and the rest is released.
//   - It ends without a report, or its vendor reports zero: all of it is spent, because the vendor answered and nobody knows how
//     much it used. A request that the vendor refused, or that never reached it, spends nothing. Of a model that is free by the
//     prices of its Provider, what was reported is spent.
//   - It does not end, because its run or this server died: all of it is spent when the task ends, when a controller records
//     that a later attempt has started, or when the server starts again, because the vendor may have answered. Nothing that a
//     worker says about its run does that; another start under the same name does. If the end is stored later, as from the spool
//     of a worker, it gives back what it did not use.
//
// What is reserved is the most that the request may use: its limit of output and an upper bound of its input, one token for each
// byte (llm.Request.MaxInput). So parallel requests never exceed a limit, unless a vendor reports more than was reserved. Requests
// of which a worker appends no events are not known here, and are limited by the vendor alone.
//
// A budget may get another window while a request is open. What was spent in the present window then counts in the new one, and
// the end of the request does not change the window back (budget.Account).
//
// All accounts and reservations are in memory, about 300 bytes each.
package spending

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	keyspace        = 'q'
	kindAccount     = 'a'
	kindReservation = 'r'
)

// server is the owner of the requests that this server makes. It is no UID.
const server = types.UID("server")

// accountID names an account.
type accountID struct {
	budget   types.UID
	identity string
}

func (id accountID) key() []byte {
	return fmt.Appendf([]byte{keyspace, kindAccount}, "%s\x00%s", id.budget, id.identity)
}

// requestID names a request. call is unique among the open requests of the owner.
type requestID struct {
	owner types.UID
	call  string
}

func (id requestID) key() []byte {
	return fmt.Appendf([]byte{keyspace, kindReservation}, "%s\x00%s", id.owner, id.call)
}

// reservation is an open request.
type reservation struct {
	Charges []budget.Charge `json:"charges"`
	// Attempt is that of the task in which the request began; 0 for requests of this server.
	Attempt int64 `json:"attempt,omitempty"`
	// Given is when all of it was spent because nobody had reported its end; zero if that did not happen. A late end may correct it.
	Given time.Time `json:"given,omitzero"`
	budget.Need
}

// Store keeps accounts in an engine. All methods may be called concurrently.
type Store struct {
	engine engine.Engine
	clock  clock.PassiveClock

	// mu guards the sequenced state, which only the commit leader changes.
	mu       sync.Mutex
	accounts map[accountID]budget.Account
	open     map[requestID]reservation
	calls    map[types.UID]map[string]bool // of open, by owner
}

// Open reads the accounts in e. Requests that an earlier server left open are spent as a whole, and accounts whose window
// is over are removed.
func Open(e engine.Engine, c clock.PassiveClock) (*Store, error) {
	s := &Store{
		engine: e, clock: c,
		accounts: map[accountID]budget.Account{}, open: map[requestID]reservation{}, calls: map[types.UID]map[string]bool{},
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("open accounts of budgets: %w", err)
	}
	if err := s.engine.Commit(engine.Join(engine.Free, &part{s: s, run: func(t *tx) error {
		t.giveUp(server, forever)
		t.prune()
		return nil
	}})); err != nil {
		return nil, fmt.Errorf("open accounts of budgets: %w", err)
	}
	return s, nil
}
