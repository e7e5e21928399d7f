// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fairshare_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/platform-ai/platform/pkg/fairshare"
)

// TestNobodyStarves: whatever namespaces hold and for how long, one that always wants more gets its part of a total, and no slot
// stays free but those that are reserved.
func TestNobodyStarves(t *testing.T) {
	const total, rounds = 12, 20000
	rnd := rand.New(rand.NewPCG(1, 2))
	shares := fairshare.Shares{Weights: map[string]int{"heavy": 4}, Reserved: map[string]int{"reserved": 2}}
	l := fairshare.NewLedger(shares)
	var held []string
	time := map[string]int{} // slots that a namespace held, summed over rounds
	wants := []string{"heavy", "light", "other"}
	for round := range rounds {
		if len(held) > 0 { // the greedy ones hold theirs longer
			i := rnd.IntN(len(held))
			if held[i] != "heavy" || rnd.IntN(3) == 0 {
				l.Release(held[i])
				held = slices.Delete(held, i, i+1)
			}
		}
		for {
			var next string
			for _, namespace := range wants {
				if l.MayTake(namespace, total-l.Sum()) && (next == "" || l.Compare(namespace, next) < 0) {
					next = namespace
				}
			}
			if next == "" {
				break
			}
			l.Served(next)
			l.Hold(next)
			held = append(held, next)
		}
		if l.Sum() != total-2 {
			t.Fatalf("round %d: %d of %d are held", round, l.Sum(), total)
		}
		for namespace, n := range l.All() {
			time[namespace] += n
		}
	}
	for namespace, weight := range map[string]float64{"heavy": 4, "light": 1, "other": 1} {
		want := (total - 2) * weight / 6
		if got := float64(time[namespace]) / rounds; got < 0.7*want || got > 1.3*want {
			t.Errorf("%s held %.2f slots on average, want about %.2f", namespace, got, want)
		}
	}
	if !l.MayTake("reserved", total-l.Sum()) {
		t.Error("the reserved slots are not free for their namespace")
	}
}

// TestTurnsOfOne: with one slot, namespaces take turns by weight, and one that comes later neither catches up nor waits for long.
func TestTurnsOfOne(t *testing.T) {
	l := fairshare.NewLedger(fairshare.Shares{Weights: map[string]int{"b": 2}})
	count := map[string]int{}
	serve := func(wants ...string) {
		next := slices.MinFunc(wants, l.Compare)
		l.Served(next)
		l.Hold(next)
		l.Release(next)
		count[next]++
	}
	for range 300 {
		serve("a", "b")
	}
	if want := map[string]int{"a": 100, "b": 200}; !maps.Equal(count, want) {
		t.Errorf("turns %v, want %v", count, want)
	}
	clear(count)
	for range 400 {
		serve("a", "b", "late")
	}
	if want := map[string]int{"a": 100, "b": 200, "late": 100}; !maps.Equal(count, want) {
		t.Errorf("turns with one that came later %v, want %v", count, want)
	}
}

func TestChecks(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no weight":     {fairshare.CheckWeights("w", map[string]int{"a": 0}), "--w: a=0: must be NAMESPACE=WEIGHT, with a weight of at least 1"},
		"weights":       {fairshare.CheckWeights("w", map[string]int{"a": 3}), ""},
		"negative":      {fairshare.CheckReserved("r", map[string]int{"a": -1}, "all", 10), "--r: a=-1: must be NAMESPACE=NUMBER, with a number of at least 0"},
		"too much":      {fairshare.CheckReserved("r", map[string]int{"a": 6, "b": 5}, "all", 10), "--r: 11 are reserved in total, which is more than --all has: 10"},
		"of no limit":   {fairshare.CheckReserved("r", map[string]int{"a": 1}, "all", 0), "--r: 1 are reserved in total, which is more than --all has: 0"},
		"none":          {fairshare.CheckReserved("r", nil, "all", 0), ""},
		"all of it":     {fairshare.CheckReserved("r", map[string]int{"a": 10}, "all", 10), ""},
		"no namespaces": {fairshare.CheckWeights("w", map[string]int{"": 1}), "--w: =1: must be NAMESPACE=WEIGHT, with a weight of at least 1"},
	} {
		got := ""
		if tc.err != nil {
			got = tc.err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
