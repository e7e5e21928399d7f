// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/fairshare"
)

func newGate() (*Gate, *clocktesting.FakePassiveClock) {
	c := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	return New(c, fairshare.Shares{}), c
}

func request(task string, call int, limits ...Limit) Request {
	return Request{Task: types.UID(task), Call: fmt.Sprint(call), Key: fmt.Sprint(task, "/", call), MaxTokens: 10, Limits: limits}
}

func ended(task string, call int, used, input *int64) Ended {
	return Ended{Call: Call{types.UID(task), fmt.Sprint(call)}, Used: used, Input: input}
}

// after returns how long a request must wait; 0 if it began.
func after(t *testing.T, g *Gate, r Request) time.Duration {
	t.Helper()
	_, err := g.Begin(t.Context(), r)
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return wait.After
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// TestNoPeriodHasMore: many tasks that come back when they are told to, and some that come back too early, never get
// more than a limit within any 60 seconds, and none of them starves.
func TestNoPeriodHasMore(t *testing.T) {
	g, c := newGate()
	limit := Limit{Of: "Provider ns/p", Requests: 7, Tokens: 100}
	begin := c.Now()
	next, began := map[int]time.Time{}, map[int]int{}
	var times []time.Time
	for c.Since(begin) < 20*time.Minute {
		for _, task := range rand.Perm(20) {
			if c.Now().Before(next[task]) && (task != 0 || rand.N(3) > 0) { // task 0 is impatient
				continue
			}
			wait := after(t, g, request(fmt.Sprint(task), began[task], limit))
			if wait > 0 {
				next[task] = c.Now().Add(min(wait, look))
				continue
			}
			if used := rand.N[int64](20); used != 0 {
				g.End(ended(fmt.Sprint(task), began[task], &used, nil))
			}
			began[task]++
			times = append(times, c.Now())
		}
		c.SetTime(c.Now().Add(time.Second))
	}
	for i := range times {
		if i >= 7 && times[i].Sub(times[i-7]) < period {
			t.Fatalf("8 requests within %v", times[i].Sub(times[i-7]))
		}
	}
	least, most := 1<<30, 0
	for task := range 20 {
		least, most = min(least, began[task]), max(most, began[task])
	}
	if least == 0 || most-least > 3 {
		t.Errorf("requests by task: %v", began)
	}
	if len(times) < 80 { // 7 in each of 20 minutes are possible, less those that the limit of tokens holds back
		t.Errorf("only %d requests in 20 minutes", len(times))
	}
}

// TestNamespacesTakeTurns: a namespace whose many tasks have used a limit alone gives it to others until they have used as much, by
// their weights; the tasks of a namespace keep their order.
func TestNamespacesTakeTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		weights map[string]int
		meek    int // of the 60 requests of the third period
	}{"equal": {nil, 30}, "heavier": {map[string]int{"greedy": 3}, 15}} {
		t.Run(name, func(t *testing.T) {
			g, c := newGate()
			g.shares.Weights = tc.weights
			limit := Limit{Of: "Provider shared/p", Requests: 60}
			call := 0
			ask := func(namespace, task string) bool {
				call++
				r := request(task, call, limit)
				r.Namespace = namespace
				return after(t, g, r) == 0
			}
			for second := range 60 {
				c.SetTime(time.Unix(1_000_000+int64(second), 0))
				if !ask("greedy", "first") {
					t.Fatal("a namespace alone must wait")
				}
			}
			began := map[string]int{}
			for second := 60; second < 180; second++ {
				c.SetTime(time.Unix(1_000_000+int64(second), 0))
				for i := range 20 { // more than there is room for; the greedy ones always ask first
					if ask("greedy", fmt.Sprint("greedy", i)) && second >= 120 {
						began["greedy"]++
					}
				}
				for i := range 2 {
					if ask("meek", fmt.Sprint("meek", i)) && second >= 120 {
						began["meek"]++
					}
				}
			}
			if diff := began["meek"] - tc.meek; diff < -2 || diff > 2 || began["greedy"] < 57-tc.meek {
				t.Errorf("began in a period: %v, want %d of meek", began, tc.meek)
			}
		})
	}
}

// TestFirstComeFirstServed: a task that comes later waits longer, and one that comes back first does not get ahead.
func TestFirstComeFirstServed(t *testing.T) {
	g, c := newGate()
	limit := Limit{Of: "Agent ns/a", Requests: 1}
	var waits []time.Duration
	for i, task := range []string{"a", "b", "c", "b"} {
		waits = append(waits, after(t, g, request(task, i, limit)))
	}
	if diff := cmp.Diff([]time.Duration{0, time.Minute, time.Minute, time.Minute}, waits); diff != "" {
		t.Error(diff)
	}
	for range 4 { // while they wait, both ask again
		c.SetTime(c.Now().Add(look))
		if c.Since(time.Unix(1_000_000, 0)) < period && (after(t, g, request("b", 1, limit)) == 0 || after(t, g, request("c", 2, limit)) == 0) {
			t.Fatal("too early")
		}
	}
	if w := after(t, g, request("c", 2, limit)); w == 0 {
		t.Error("c got ahead of b")
	}
	if w := after(t, g, request("b", 1, limit)); w != 0 {
		t.Errorf("b waits %v more", w)
	}
	if w := after(t, g, request("a", 4, limit)); w != period {
		t.Errorf("a waits %v", w)
	}
	for range 4 {
		c.SetTime(c.Now().Add(look))
		if w := after(t, g, request("a", 4, limit)); w == 0 {
			t.Error("a got ahead of c")
		}
		if c.Since(time.Unix(1_000_000, 0)) < 2*period {
			after(t, g, request("c", 2, limit))
		}
	}
	g.Forget("c") // it was cancelled
	if w := after(t, g, request("a", 4, limit)); w != 0 {
		t.Errorf("a waits %v for a task that has ended", w)
	}
	after(t, g, request("d", 5, limit))
	c.SetTime(c.Now().Add(time.Minute + grace + 2*time.Second)) // d does not come back
	if w := after(t, g, request("e", 6, limit)); w != 0 {
		t.Errorf("e waits %v for a task that is away", w)
	}
}

// TestTokens: the estimate counts until the end is reported, then the figures do. A request without figures keeps it.
func TestTokens(t *testing.T) {
	g, c := newGate()
	limit := Limit{Of: "Provider ns/p", Tokens: 100}
	big := request("a", 1, limit)
	big.MaxTokens = 500
	if w := after(t, g, big); w != 0 {
		t.Errorf("a request that exceeds the limit alone waits %v", w)
	}
	if w := after(t, g, request("b", 2, limit)); w != period {
		t.Errorf("waits %v", w)
	}
	used, input := int64(60), int64(25)
	if !g.End(ended("a", 1, &used, &input)) || g.End(ended("a", 1, &used, &input)) {
		t.Error("a request ends once")
	}
	if w := after(t, g, request("b", 2, limit)); w != 0 {
		t.Errorf("waits %v although tokens were given back", w)
	}
	if !g.End(ended("b", 2, nil, nil)) { // unknown: 10 stay
		t.Error("not open")
	}
	if w := after(t, g, request("a", 3, limit)); w == 0 {
		t.Error("60 + 10 + 10 and 25 for the input do not fit into 100") // 105
	}
	undo, err := g.Begin(t.Context(), request("c", 4, limit))
	if err == nil {
		t.Error("c got ahead of a")
		undo()
	}
	c.SetTime(c.Now().Add(period))
	if w := after(t, g, request("a", 3, limit)); w != 0 {
		t.Errorf("waits %v", w)
	}
}

// TestOneRequestOnce: a repeated start is not counted again, and one that could not be stored is not counted at all.
func TestOneRequestOnce(t *testing.T) {
	g, _ := newGate()
	limit := Limit{Of: "Provider ns/p", Requests: 1}
	undo, err := g.Begin(t.Context(), request("a", 1, limit))
	if err != nil {
		t.Fatal(err)
	}
	if w := after(t, g, request("a", 1, limit)); w != 0 {
		t.Error("a repeated request is refused")
	}
	undo()
	if w := after(t, g, request("b", 1, limit)); w != 0 {
		t.Error("a request that was not stored counts")
	}
}

// TestBudgets: a request counts for its task and the tasks above it; what is left decides, and it is read from the
// stored events once.
func TestBudgets(t *testing.T) {
	g, _ := newGate()
	reads := 0
	root := Budget{Task: "root", Name: "root", Most: 100, Used: func(context.Context) (*Spent, error) { reads++; return &Spent{Tokens: 40}, nil }}
	own := Budget{Task: "child", Name: "child", Most: 30, Used: func(context.Context) (*Spent, error) { return &Spent{}, nil }}
	ask := func(task string, call int, budgets ...Budget) error {
		r := request(task, call)
		r.Budgets = budgets
		_, err := g.Begin(t.Context(), r)
		return err
	}
	for i := range 3 {
		if err := ask("child", i, own, root); err != nil {
			t.Fatal(err)
		}
	}
	var spent *BudgetError
	if err := ask("child", 3, own, root); !errors.As(err, &spent) || *spent != (BudgetError{"child", 30, 10, 30}) {
		t.Errorf("got %v", err)
	}
	for i := range 3 {
		if err := ask("other", i, root); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("other", 3, root); !errors.As(err, &spent) || *spent != (BudgetError{"root", 100, 10, 100}) || reads != 1 {
		t.Errorf("got %v after %d reads", err, reads)
	}
	used := int64(2)
	g.End(ended("child", 1, &used, nil))
	if err := ask("child", 4, own, root); err == nil {
		t.Error("22 and 10 fit into 30")
	}
	g.End(ended("other", 1, &used, nil))
	if err := ask("other", 4, root); err != nil {
		t.Error(err)
	}
	if err := ask("third", 0, Budget{Task: "x", Most: 1000, Used: func(context.Context) (*Spent, error) { return nil, errors.New("no disk") }}); err == nil || errors.As(err, &spent) {
		t.Errorf("got %v", err)
	}
}

// TestLate: a request whose start was left out counts as well, and later ones wait for it.
func TestLate(t *testing.T) {
	g, _ := newGate()
	limit := Limit{Of: "Provider ns/p", Requests: 1}
	used := int64(5)
	if g.End(ended("a", 1, &used, nil)) {
		t.Error("known")
	}
	g.Late(Request{Task: "a", Limits: []Limit{limit}}, ended("a", 1, &used, nil))
	if w := after(t, g, request("a", 2, limit)); w != period {
		t.Errorf("waits %v", w)
	}
}
