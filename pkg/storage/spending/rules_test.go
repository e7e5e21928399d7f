// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending_test

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/usage"
)

// price is 2 USD for a million tokens of input, 0.5 of which a cache had, and 10 of output.
func price() *usage.Price {
	return &usage.Price{Model: "m", Currency: "USD", Input: 2_000_000, Cached: 500_000, Written: 2_000_000, Output: 10_000_000}
}

func inMoney(name string, limit int64) budget.Charge {
	c := charge(name, "", limit)
	c.Currency = "USD"
	return c
}

// TestBegunAgain: a request that is begun again under the name of an open one gives nothing back. The earlier one is spent
// as a whole, so a client that repeats a name gets no more than one that does not.
func TestBegunAgain(t *testing.T) {
	t.Parallel()
	s, e := open(t, t.TempDir())
	defer e.Close()
	begun := 0
	for ; begun < 100; begun++ {
		if err := s.Commit(engine.Grow, s.Begin("same", []budget.Charge{charge("all", "", 1000)}, tokens(300))); isExhausted(err) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got := balance(s, "all"); begun != 3 || got.Spent != 600 || got.Reserved != 300 {
		t.Errorf("begun %d times: %+v; want 3 times, 600 spent and 300 reserved", begun, got)
	}
	if err := s.Commit(engine.Upkeep, s.End("same", output(1), nil)); err != nil {
		t.Fatal(err)
	}
	if got := balance(s, "all"); got.Spent != 601 || got.Reserved != 0 {
		t.Errorf("ended: %+v", got)
	}
}

// TestCost: a request is reserved and settled in tokens and in money at once, by the price that was in force when it
// began, also after a restart. Without a price in the currency of a budget it is refused, and reserved nowhere.
func TestCost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, e := open(t, dir)
	both := []budget.Charge{charge("tokens", "", 10_000), inMoney("money", 20_000)} // two cents
	begin := func(call string, p *usage.Price) error {
		return s.Commit(engine.Grow, s.Begin(call, both, budget.NeedOf(1000, 100, p)))
	}
	check := func(when string, tokens, reservedTokens, cost, reserved int64) {
		t.Helper()
		a, b := balance(s, "tokens"), balance(s, "money")
		if a.Spent != tokens || a.Reserved != reservedTokens || b.Spent != cost || b.Reserved != reserved {
			t.Errorf("%s: tokens %+v, money %+v", when, a, b)
		}
	}
	end := func(call string, c *usage.Counts) {
		t.Helper()
		if err := s.Commit(engine.Upkeep, s.End(call, &usage.Outcome{Counts: *c}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*usage.Price{nil, {Currency: "EUR", Input: 1}} {
		if _, ok := errors.AsType[*budget.UnpricedError](begin("unpriced", p)); !ok {
			t.Errorf("a request with the price %+v is not refused", p)
		}
	}
	check("refused", 0, 0, 0, 0)
	for _, call := range []string{"a", "b", "c"} {
		if err := begin(call, price()); err != nil {
			t.Fatal(err)
		}
	}
	check("begun", 0, 3300, 0, 9000) // each 1000·2 + 100·10
	end("a", &usage.Counts{InputTokens: new(int64(800)), OutputTokens: new(int64(50)), CachedInputTokens: new(int64(600)), CacheWriteInputTokens: new(int64)})
	check("settled", 850, 2200, 1200, 6000) // 200·2 + 600·0.5 + 50·10
	end("b", &usage.Counts{InputTokens: new(int64(800)), OutputTokens: new(int64(50))})
	check("the part of the cache is not known", 1700, 1100, 3300, 3000) // as if none of it came from there
	end("c", &usage.Counts{InputTokens: new(int64(800))})
	check("nothing is known", 2800, 0, 6300, 0)
	if err := begin("d", price()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s, e = open(t, dir)
	defer e.Close()
	check("after a restart", 3900, 0, 9300, 0) // nobody knows what the request used that was open
	for n := 0; ; n++ {
		if err := begin(strconv.Itoa(n), price()); isExhausted(err) {
			if n != 3 {
				t.Errorf("%d more requests", n)
			}
			break
		}
	}
	// A budget that counts money from now on begins anew, and does not mistake tokens for it.
	if err := s.Commit(engine.Grow, s.Begin("changed", []budget.Charge{inMoney("tokens", 5000)}, budget.NeedOf(1000, 100, price()))); err != nil {
		t.Fatal(err)
	}
	end("0", &output(1).Counts)
	if got := balance(s, "tokens"); got.Currency != "USD" || got.Spent != 0 || got.Reserved != 3000 {
		t.Errorf("after the change of its unit: %+v", got)
	}
}

// TestCostNeverExceeded: parallel requests of three overlapping budgets, of tokens and of money, never exceed any of them.
func TestCostNeverExceeded(t *testing.T) {
	t.Parallel()
	s, e := open(t, t.TempDir())
	defer e.Close()
	limits := []budget.Charge{charge("a", "", 5000), inMoney("b", 12_000), inMoney("c", 9_000)}
	var all sync.WaitGroup
	var refused atomic.Int64
	for worker := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 3))
			for i := range 100 {
				call, charges := strconv.Itoa(worker*1000+i), limits[r.IntN(2):]
				if err := s.Commit(engine.Grow, s.Begin(call, charges, budget.NeedOf(r.Int64N(200), 4+r.Int64N(100), price()))); err != nil { // no request uses more than it reserves
					refused.Add(1)
					continue
				}
				for _, c := range limits {
					if got := balance(s, c.Name); got.Spent+got.Reserved > c.Limit {
						t.Errorf("%s: %+v exceeds %d", c.Name, got, c.Limit)
					}
				}
				if err := s.Commit(engine.Upkeep, s.End(call, output(r.Int64N(5)), nil)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, c := range limits {
		if got := balance(s, c.Name); got.Reserved != 0 || got.Spent > c.Limit {
			t.Errorf("%s: %+v", c.Name, got)
		}
	}
	if refused.Load() == 0 {
		t.Error("no request was refused")
	}
}
