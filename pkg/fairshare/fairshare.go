// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fairshare decides whose turn it is when something scarce becomes free: a slot for a run, a slot for a chat, room under
// a rate limit. It goes round the namespaces that want it; what comes first within a namespace is up to the caller.
//
// The next is the namespace that holds least, in relation to its weight. Of several that hold the same, it is the one that has
// been served least in relation to its weight since it began to take part, so with a single slot namespaces take turns. What a
// namespace holds is never taken away from it, so others get their share back as what it holds ends. A namespace can have a
// reserved part, which stays free for it.
package fairshare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Shares say how something is divided among namespaces. The zero value divides it equally.
type Shares struct {
	// Weights are the weights of namespaces; others have 1.
	Weights map[string]int
	// Reserved is how much only a namespace itself can take.
	Reserved map[string]int
}

// Weight returns the weight of a namespace.
func (s Shares) Weight(namespace string) float64 {
	return float64(max(1, s.Weights[namespace]))
}

// CheckWeights returns what is wrong with weights that a flag of that name sets.
func CheckWeights(flag string, weights map[string]int) error {
	for _, namespace := range slices.Sorted(maps.Keys(weights)) {
		if n := weights[namespace]; namespace == "" || n < 1 {
			return fmt.Errorf("--%s: %s=%d: must be NAMESPACE=WEIGHT, with a weight of at least 1", flag, namespace, n)
		}
	}
	return nil
}

// CheckReserved returns what is wrong with the reserved parts that a flag sets of a total, which the flag named of sets.
func CheckReserved(flag string, reserved map[string]int, of string, total int) error {
	sum := 0
	for _, namespace := range slices.Sorted(maps.Keys(reserved)) {
		n := reserved[namespace]
		if namespace == "" || n < 0 {
			return fmt.Errorf("--%s: %s=%d: must be NAMESPACE=NUMBER, with a number of at least 0", flag, namespace, n)
		}
		sum += n
	}
	if sum > 0 && sum > total {
		return fmt.Errorf("--%s: %d are reserved in total, which is more than --%s has: %d", flag, sum, of, total)
	}
	return nil
}

// Ledger counts what namespaces hold. It is not safe for concurrent use.
type Ledger struct {
	shares Shares
	held   map[string]int
	sum    int
	// turns says how much each namespace was served, divided by its weight. now is the value of the one that was served last;
	// a namespace that begins to take part begins there, so that it neither catches up nor falls behind.
	turns map[string]float64
	now   float64
}

// NewLedger returns a ledger of which nothing is held.
func NewLedger(s Shares) *Ledger {
	return &Ledger{shares: s, held: map[string]int{}, turns: map[string]float64{}}
}

// Hold notes that a namespace holds one more.
func (l *Ledger) Hold(namespace string) {
	l.held[namespace]++
	l.sum++
}

// Release notes that it holds one less.
func (l *Ledger) Release(namespace string) {
	l.sum--
	if l.held[namespace]--; l.held[namespace] == 0 {
		delete(l.held, namespace)
	}
}

// Served notes that it was the turn of a namespace.
func (l *Ledger) Served(namespace string) {
	l.now = l.turn(namespace)
	l.turns[namespace] = l.now + 1/l.shares.Weight(namespace)
	maps.DeleteFunc(l.turns, func(other string, at float64) bool { return at <= l.now && l.held[other] == 0 })
}

func (l *Ledger) turn(namespace string) float64 { return max(l.now, l.turns[namespace]) }

// Held returns how much a namespace holds.
func (l *Ledger) Held(namespace string) int { return l.held[namespace] }

// Sum returns how much all hold.
func (l *Ledger) Sum() int { return l.sum }

// All returns how much each namespace holds.
func (l *Ledger) All() map[string]int { return maps.Clone(l.held) }

// AllReserved returns how much only each namespace itself can take.
func (l *Ledger) AllReserved() map[string]int { return maps.Clone(l.shares.Reserved) }

// owed returns how much of its reserved part a namespace does not hold.
func (l *Ledger) owed(namespace string) int {
	return max(0, l.shares.Reserved[namespace]-l.held[namespace])
}

// MayTake reports whether a namespace can have one of so many that are free: one of its reserved part, or one that is not reserved
// for others.
func (l *Ledger) MayTake(namespace string, free int) bool {
	if free <= 0 || l.owed(namespace) > 0 {
		return free > 0
	}
	for other := range l.shares.Reserved {
		free -= l.owed(other)
	}
	return free > 0
}

// Compare is negative if it is the turn of namespace a before that of b, and 0 if nothing decides between them.
func (l *Ledger) Compare(a, b string) int {
	return cmp.Or(
		-cmp.Compare(min(1, l.owed(a)), min(1, l.owed(b))),
		cmp.Compare(float64(l.held[a])/l.shares.Weight(a), float64(l.held[b])/l.shares.Weight(b)),
		cmp.Compare(l.turn(a), l.turn(b)),
	)
}
