// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Budget is the token budget of one task, for itself and the tasks below it.
type Budget struct {
	Task types.UID
	// Name is the task's name, for people.
	Name string
	Most int64
	// Used reads from the stored events what was used before. Other requests go on meanwhile.
	Used func(context.Context) (*Spent, error)
}

// Spent is what a task and the tasks below it have used, by their stored events.
type Spent struct {
	// Tokens is the sum, with the estimates of the requests that have no end.
	Tokens int64
	// Open has the estimates of the requests that have no end.
	Open map[Call]int64
	// Read is, for each task, the number of the last event that was read.
	Read map[types.UID]int64
}

// BudgetError says that a budget has no room for a request.
type BudgetError struct {
	Task              string
	Used, Asked, Most int64
}

// Error names the budget and what is left of it.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("spec.ai.tokenBudget of task %s: the next model request may need %d tokens; %d of %d are used", e.Task, e.Asked, e.Used, e.Most)
}

// tally is what is used of a budget.
type tally struct {
	// read is closed when the read of the stored events is over. known says that it succeeded.
	read  chan struct{}
	known bool
	// missed are the ends that were reported during the read.
	missed []Ended
	spent  *Spent // set if known
	asked  time.Time
}

// afford returns nothing if each budget has room for n tokens, or the first budget whose tally is not known.
func (g *Gate) afford(budgets []Budget, n int64, now time.Time) (unread *Budget, err error) {
	for i, b := range budgets {
		t := g.tallies[b.Task]
		if t == nil || !t.known {
			return &budgets[i], nil
		}
		t.asked = now
		if t.spent.Tokens+n > b.Most {
			return nil, &BudgetError{Task: b.Name, Used: t.spent.Tokens, Asked: n, Most: b.Most}
		}
	}
	return nil, nil //nolint:nilnil // there is room
}

// read reads a tally from the stored events, or waits until another request has tried to.
func (g *Gate) read(ctx context.Context, b Budget) error {
	g.mu.Lock()
	t, reading := g.tallies[b.Task]
	if !reading {
		t = &tally{read: make(chan struct{})}
		g.tallies[b.Task] = t
	}
	g.mu.Unlock()
	if reading {
		select {
		case <-t.read:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	spent, err := (*Spent)(nil), errors.New("the tokens that were used could not be read")
	defer func() { g.learn(b.Task, t, spent, err) }() // also after a panic, so that nobody waits for ever
	spent, err = b.Used(ctx)
	return err
}

// learn ends the read of a tally.
func (g *Gate) learn(task types.UID, t *tally, spent *Spent, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer close(t.read)
	if err != nil {
		delete(g.tallies, task)
		return
	}
	if t.known, t.spent, t.asked = true, spent, g.clock.Now(); spent.Open == nil {
		spent.Open = map[Call]int64{}
	}
	if spent.Read == nil {
		spent.Read = map[types.UID]int64{}
	}
	for _, e := range t.missed {
		t.end(e)
	}
	t.missed = nil
}

// endIn settles a request in the tally of a budget, if there is one. Otherwise the end will be read with the other events.
func (g *Gate) endIn(budget types.UID, e Ended, now time.Time) {
	t := g.tallies[budget]
	switch {
	case t == nil:
	case !t.known:
		t.missed = append(t.missed, e)
	default:
		t.asked = now
		t.end(e)
	}
}

// begin reserves tokens. If an earlier request of the same name has no end, its estimate stays.
func (t *tally) begin(c Call, tokens int64) {
	t.spent.Tokens += tokens
	t.spent.Open[c] = tokens
}

func (t *tally) undo(c Call) {
	if !t.known {
		return // the read found no start
	}
	t.spent.Tokens -= t.spent.Open[c]
	delete(t.spent.Open, c)
}

// end settles a request. The end of one that is not open was counted before, or its start was left out.
func (t *tally) end(e Ended) {
	estimate, open := t.spent.Open[e.Call]
	if counted := e.Seq <= t.spent.Read[e.Task]; e.Used != nil && (open || !counted) {
		t.spent.Tokens += *e.Used - estimate
	}
	delete(t.spent.Open, e.Call)
	t.spent.Read[e.Task] = max(t.spent.Read[e.Task], e.Seq)
}
