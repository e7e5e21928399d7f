// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota has what the limits of all stores have in common: the errors with which they refuse, the rates, and the
// totals of namespaces, which are kept in a row each.
package quota

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// burstSeconds is how much of a rate may come at once after a rest.
const burstSeconds = 16

// Errors of limits, to be compared with errors.Is.
var (
	// ErrLimit refuses what would go over a total; see LimitError.
	ErrLimit = errors.New("exceeded quota")
	// ErrRate refuses what comes too fast, for now; see RateError.
	ErrRate = errors.New("too fast")
)

// LimitError is an ErrLimit that names the limit.
type LimitError struct {
	Limit             string // what is limited, with its unit
	Of                string // whose limit it is: OfTask or OfNamespace
	Used, Asked, Most int64
}

// OfTask is LimitError.Of for a limit of each task.
const OfTask = "the task"

// OfNamespace is LimitError.Of for a limit of each namespace.
func OfNamespace(ns string) string { return "namespace " + ns }

// Error is worded as that of a ResourceQuota.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %s of %s: requested %d, used %d, limited %d", ErrLimit, e.Limit, e.Of, e.Asked, e.Used, e.Most)
}

// Is makes every LimitError an ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// RateError is an ErrRate with the time after which a retry may succeed.
type RateError struct {
	What  string // what comes too fast
	Of    string // whose rate it is: the task or the namespace
	After time.Duration
}

// Error says when to come again.
func (e *RateError) Error() string {
	return fmt.Sprintf("too many %s: the %s appends faster than it may; try again in %v", e.What, e.Of, e.After)
}

// Is makes every RateError an ErrRate.
func (e *RateError) Is(target error) bool { return target == ErrRate }

// RetryAfter is the time in whole seconds, at least one.
func (e *RateError) RetryAfter() int { return max(1, int(math.Ceil(e.After.Seconds()))) }

// Rates are the bytes that each of many may still send at once.
type Rates struct {
	mu      sync.Mutex
	buckets *lru.Cache // *bucket, by its name
}

type bucket struct {
	left float64
	at   time.Time
}

// NewRates remembers so many names; one that it forgets may send a burst again.
func NewRates(names int) *Rates { return &Rates{buckets: lru.New(names)} }

// Take takes n bytes from the bucket of a name, which may go below zero by one call, and reports how long it is empty. It
// fills by rate bytes a second up to 16 seconds of them; a rate of 0 is no limit.
func (r *Rates) Take(name string, n int, rate int64, now time.Time) time.Duration {
	if rate <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	most := float64(rate * burstSeconds)
	b := &bucket{left: most, at: now}
	if v, ok := r.buckets.Get(name); ok {
		b, _ = v.(*bucket)
	} else {
		r.buckets.Add(name, b)
	}
	b.left = min(most, b.left+now.Sub(b.at).Seconds()*float64(rate))
	b.at = now
	if b.left <= 0 {
		return time.Duration((1 - b.left) / float64(rate) * float64(time.Second))
	}
	b.left -= float64(n)
	return 0
}
