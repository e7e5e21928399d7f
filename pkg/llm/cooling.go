// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"errors"
	"slices"
	"time"
)

// coolingTime is how long a candidate that failed is asked last, unless the vendor asked for a longer pause.
const coolingTime = time.Minute

// CoolDown returns how long a candidate whose attempts ended with a failure of this class is asked last, and false if
// the failure says nothing about the next request. retryAfter is the pause that the vendor asked for.
func CoolDown(class Class, retryAfter time.Duration) (pause time.Duration, cools bool) {
	switch class {
	case ClassAuth, ClassQuota, ClassRateLimited, ClassServer, ClassUnreachable:
		return max(coolingTime, retryAfter), true
	case ClassContextTooLong, ClassInvalidRequest, ClassCutStream, ClassMalformed, ClassCanceled:
		return 0, false
	default:
		return 0, false
	}
}

// lookAgain is how often a run asks at most which candidates other runs have given up.
const lookAgain = 15 * time.Second

// Cooling remembers the candidates of a run that failed, so that its next requests do not ask them first. The zero
// value is ready to use. It is for one list of candidates, and not safe for concurrent use.
type Cooling struct {
	// Look, if set, returns until when each candidate is asked last because of what other runs met. It is called before
	// a request if there is a choice, and returns nil if it cannot tell.
	Look func(context.Context) []time.Time

	until map[int]time.Time // by the place in the list
	// others holds what other runs met; it begins with what the candidates say.
	others []time.Time
	looked time.Time
}

// look learns what other runs met, if that is not known since a short while ago.
func (c *Cooling) look(ctx context.Context, list []Candidate, now time.Time) {
	switch {
	case c == nil:
	case c.looked.IsZero(): // the candidates were read a moment ago
		c.looked = now
	case c.Look != nil && len(list) > 1 && now.Sub(c.looked) >= lookAgain:
		c.looked = now
		if others := c.Look(ctx); len(others) == len(list) {
			c.others = others
		}
	}
}

// order returns the places of the candidates in the order in which they are asked: first those that have not failed
// for a while, then the others, each group in its own order. Nothing is left out, because all may have failed.
func (c *Cooling) order(list []Candidate, now time.Time) []int {
	if c == nil {
		c = &Cooling{}
	}
	if c.others == nil {
		for _, candidate := range list {
			c.others = append(c.others, candidate.CoolingUntil)
		}
	}
	all := make([]int, len(list))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return c.rank(a, now) - c.rank(b, now) })
	return all
}

func (c *Cooling) rank(i int, now time.Time) int {
	if now.Before(c.until[i]) || now.Before(c.others[i]) {
		return 1
	}
	return 0
}

func (c *Cooling) set(i int, until time.Time) {
	if c.until == nil {
		c.until = map[int]time.Time{}
	}
	c.until[i] = until
}

// note records how the attempts at a candidate ended.
func (c *Cooling) note(i int, err error, now time.Time) {
	if c == nil {
		return
	}
	if err == nil {
		delete(c.until, i)
		c.others[i] = time.Time{}
		return
	}
	var asked time.Duration
	if e, ok := errors.AsType[*Error](err); ok {
		asked = e.RetryAfter
	}
	if pause, cools := CoolDown(ClassOf(err), asked); cools {
		c.set(i, now.Add(pause))
	}
}
