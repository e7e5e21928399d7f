// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota holds what the limits of all stores have in common: the errors of refused writes, the
// rates, and the totals of namespaces, each kept in its own row.
package quota

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// burstSeconds is how many seconds' worth of a rate may be used at once after a pause.
const burstSeconds = 16

// Errors of limits, to be compared with errors.Is.
var (
	// ErrLimit refuses a write that would exceed a total; see LimitError.
	ErrLimit = errors.New("exceeded quota")
	// ErrRate refuses a write that comes too fast; a later retry may succeed. See RateError.
	ErrRate = errors.New("too fast")
)

// LimitError is an ErrLimit that names the limit.
type LimitError struct {
	Limit             string // what is limited, with its unit
	Of                string // the owner of the limit: OfTask or OfNamespace
	Used, Asked, Most int64
}

// OfTask is LimitError.Of for a limit of each task.
const OfTask = "the task"

// OfNamespace is LimitError.Of for a limit of each namespace.
func OfNamespace(ns string) string { return "namespace " + ns }

// Error uses the wording of a ResourceQuota error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v: %s of %s: requested %d, used %d, limited %d", ErrLimit, e.Limit, e.Of, e.Asked, e.Used, e.Most)
}

// Is makes every LimitError an ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// RateError is an ErrRate with the time after which a retry may succeed.
type RateError struct {
	What  string // what is written too fast
	Of    string // the owner of the rate: the task or the namespace
	Rate  int64  // in bytes per second
	After time.Duration
}

// Error states when to retry.
func (e *RateError) Error() string {
	return fmt.Sprintf("too many %s: the %s appends faster than it may; try again in %v", e.What, e.Of, e.After)
}

// Is makes every RateError an ErrRate.
func (e *RateError) Is(target error) bool { return target == ErrRate }

// RetryAfter returns the time until a retry may succeed, in whole seconds and at least one.
func (e *RateError) RetryAfter() int { return max(1, int(math.Ceil(e.After.Seconds()))) }

// Note describes a refusal to the people who read the stream of the task. Key tells limits apart.
type Note struct {
	Key, Text string
	Content   map[string]any
}

// NoteOf returns the note about an error, if it is a LimitError or a RateError. refused is what is refused.
func NoteOf(err error, refused string) (Note, bool) {
	if l, ok := errors.AsType[*LimitError](err); ok {
		return Note{
			Key: l.Limit + " of " + l.Of, Text: fmt.Sprintf("the server refuses further %s of the task: %v", refused, l),
			Content: map[string]any{"limit": l.Limit, "of": l.Of, "limited": l.Most},
		}, true
	}
	if r, ok := errors.AsType[*RateError](err); ok {
		limit := "rate of " + r.What
		return Note{
			Key:     limit + " of the " + r.Of,
			Text:    fmt.Sprintf("the server delays the task's %s: too many %s; the %s may write %d bytes of them a second", refused, r.What, r.Of, r.Rate),
			Content: map[string]any{"limit": limit, "of": "the " + r.Of, "limited": r.Rate},
		}, true
	}
	return Note{}, false
}

// Rates keeps a token bucket of bytes for each of many names.
type Rates struct {
	mu      sync.Mutex
	buckets *lru.Cache // *bucket, by its name
}

type bucket struct {
	left float64
	at   time.Time
}

// NewRates returns Rates that remember up to names names. A forgotten name may send a full burst again.
func NewRates(names int) *Rates { return &Rates{buckets: lru.New(names)} }

// Check takes n bytes from a bucket like Take, and returns a RateError in place of the time.
func (r *Rates) Check(name string, n int, rate int64, now time.Time, what, of string) error {
	if after := r.Take(name, n, rate, now); after > 0 {
		return &RateError{What: what, Of: of, Rate: rate, After: after}
	}
	return nil
}

// Take takes n bytes from the bucket of a name and returns 0. If the bucket is empty, it takes nothing and
// returns the time until the bucket is no longer empty. One call may take the bucket below zero. The bucket
// fills by rate bytes per second, up to 16 seconds' worth; a rate of 0 means no limit.
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
