// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"errors"
	"slices"
	"time"
)

// coolingTime is how long a candidate that failed is asked last, unless the vendor asked for a longer pause.
const coolingTime = time.Minute

// Cooling remembers the candidates of a run that failed, so that its next requests do not ask them first. The zero
// value is ready to use. It is for one list of candidates, and not safe for concurrent use.
type Cooling struct {
	until map[int]time.Time // by the place in the list
}

// order returns the places of n candidates in the order in which they are asked: first those that have not failed
// for a while, then the others, each group in its own order. Nothing is left out, because all may have failed.
func (c *Cooling) order(n int, now time.Time) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if c != nil {
		slices.SortStableFunc(all, func(a, b int) int { return c.rank(a, now) - c.rank(b, now) })
	}
	return all
}

func (c *Cooling) rank(i int, now time.Time) int {
	if now.Before(c.until[i]) {
		return 1
	}
	return 0
}

// note records how the attempts at a candidate ended.
func (c *Cooling) note(i int, err error, now time.Time) {
	if c == nil {
		return
	}
	switch ClassOf(err) {
	case ClassAuth, ClassQuota, ClassRateLimited, ClassServer, ClassUnreachable:
	case "":
		delete(c.until, i)
		return
	default: // the failure says nothing about the next request
		return
	}
	pause := coolingTime
	if e, ok := errors.AsType[*Error](err); ok {
		pause = max(pause, e.RetryAfter)
	}
	if c.until == nil {
		c.until = map[int]time.Time{}
	}
	c.until[i] = now.Add(pause)
}
