// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelgate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
)

// reads is the store of a budget's events. A read waits for an answer.
type reads struct {
	begun   int
	answers chan *Spent // nil for a read that fails
}

func (r *reads) used(ctx context.Context) (*Spent, error) {
	r.begun++
	select {
	case s := <-r.answers:
		if s == nil {
			return nil, errors.New("no disk")
		}
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin begins a request elsewhere and returns where its result arrives.
func begin(ctx context.Context, g *Gate, r Request) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := g.Begin(ctx, r)
		result <- err
	}()
	return result
}

// TestNobodyWaitsForTheReadOfAnother: while what was used of a budget is read, requests that the budget does not concern
// begin and end, and ends without a start are counted. Requests of the budget share one read, and do not wait longer than they want to.
func TestNobodyWaitsForTheReadOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		store := &reads{answers: make(chan *Spent)}
		of := func(task string, call int) Request {
			r := request(task, call)
			r.Budgets = []Budget{{Task: "root", Name: "root", Most: 100, Used: store.used}}
			return r
		}
		one := begin(t.Context(), g, of("a", 1))
		synctest.Wait() // it reads
		two := begin(t.Context(), g, of("b", 1))
		short, cancel := context.WithCancel(t.Context())
		impatient := begin(short, g, of("c", 1))
		synctest.Wait()
		cancel()
		if err := <-impatient; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		other, used := begin(t.Context(), g, request("other", 1)), int64(7)
		synctest.Wait()
		select {
		case err := <-other:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Error("a request of another task waits")
		}
		g.End(ended("other", 1, &used, nil))
		for seq := range int64(3) { // a worker that reports ends without starts
			late := ended("a", 9, &used, nil)
			late.Seq = 10 + seq
			g.Late(of("a", 9), late)
		}
		store.answers <- &Spent{Tokens: 30, Read: map[types.UID]int64{"a": 10}}
		for _, result := range []<-chan error{one, two} {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		// 30 with the first of the three ends, 14 for the others, and 20 for the two requests.
		var spent *BudgetError
		if err := <-begin(t.Context(), g, large(of("a", 2))); !errors.As(err, &spent) || spent.Used != 64 || store.begun != 1 {
			t.Errorf("%d reads: %v", store.begun, err)
		}
	})
}

func large(r Request) Request {
	r.MaxTokens = 1000
	return r
}

// TestAFailedReadIsRepeated: whoever waited for a read that fails reads itself.
func TestAFailedReadIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate()
		store := &reads{answers: make(chan *Spent)}
		var results []<-chan error
		for i := range 3 {
			r := request(fmt.Sprint(i), 1)
			r.Budgets = []Budget{{Task: "root", Most: 100, Used: store.used}}
			results = append(results, begin(t.Context(), g, r))
			synctest.Wait()
		}
		store.answers <- nil
		store.answers <- &Spent{}
		failed := 0
		for _, result := range results {
			if <-result != nil {
				failed++
			}
		}
		if failed != 1 || store.begun != 2 {
			t.Errorf("%d failed, %d reads", failed, store.begun)
		}
	})
}

// TestEndsCountOnce: an end settles the estimate that was read, is not counted again if it was read, and counts if its start was
// left out; a repeated end changes nothing. Nothing is read again.
func TestEndsCountOnce(t *testing.T) {
	g, c := newGate()
	count := 0
	ask := func(most int64) Request {
		r := request("a", 1)
		r.MaxTokens = most
		r.Budgets = []Budget{{Task: "a", Name: "a", Most: 1000, Used: func(context.Context) (*Spent, error) {
			count++
			return &Spent{Tokens: 100, Open: map[Call]int64{{"a", "5"}: 60}, Read: map[types.UID]int64{"a": 20}}, nil
		}}}
		return r
	}
	used := func() int64 {
		t.Helper()
		var spent *BudgetError
		if _, err := g.Begin(t.Context(), ask(10_000)); !errors.As(err, &spent) {
			t.Fatal(err)
		}
		return spent.Used
	}
	tokens := int64(25)
	late := func(call int, seq int64, used *int64) {
		e := ended("a", call, used, nil)
		e.Seq = seq
		if !g.End(e) {
			g.Late(ask(0), e)
		}
	}
	for i, step := range []struct {
		do   func()
		want int64
	}{
		{func() {}, 100},
		{func() { late(3, 19, &tokens) }, 100}, // it was read
		{func() { late(5, 21, &tokens) }, 65},  // it was open when the events were read
		{func() { late(5, 21, &tokens) }, 65},
		{func() { late(6, 22, &tokens) }, 90}, // its start was left out
		{func() { late(6, 22, &tokens) }, 90},
		{func() { late(7, 23, nil) }, 90},
		{func() { c.SetTime(c.Now().Add(memory / 2)) }, 90},
		{func() {
			c.SetTime(c.Now().Add(memory))
			if err := <-begin(t.Context(), g, request("b", 1)); err != nil {
				t.Error(err)
			}
		}, 100}, // read again, with the same answer
	} {
		if step.do(); used() != step.want {
			t.Errorf("step %d: used %d, want %d", i, used(), step.want)
		}
	}
	if count != 2 {
		t.Errorf("%d reads", count)
	}
}
