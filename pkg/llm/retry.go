// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Policy says how often an attempt is repeated, and after what pause. The zero value means the
// defaults that are given for each field.
type Policy struct {
	// MaxAttempts counts all attempts at one model, the first included. Default 4.
	MaxAttempts int
	// Base is the pause before the second attempt; it doubles with each further
	// one. Default 1 s.
	Base time.Duration
	// Cap is the longest pause, unless the vendor asks for a longer one. Default 30 s.
	Cap time.Duration
	// MaxRetryAfter is the longest pause that a vendor may ask for. A longer one ends the
	// attempts, since an earlier request would only be refused again. Default 2 min.
	MaxRetryAfter time.Duration
	// Jitter returns a number in [0, 1). Default math/rand.
	Jitter func() float64
}

func (p Policy) withDefaults() Policy {
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 4
	}
	if p.Base == 0 {
		p.Base = time.Second
	}
	if p.Cap == 0 {
		p.Cap = 30 * time.Second
	}
	if p.MaxRetryAfter == 0 {
		p.MaxRetryAfter = 2 * time.Minute
	}
	if p.Jitter == nil {
		p.Jitter = rand.Float64
	}
	return p
}

// Next decides after failed attempt number n (from 1): whether to try again, and after what
// pause. A vendor's Retry-After is a lower bound of the pause. Without it the pause grows
// exponentially, and its upper half is random.
func (p Policy) Next(n int, err error) (pause time.Duration, again bool) {
	p = p.withDefaults()
	if n >= p.MaxAttempts || !ClassOf(err).Retryable() {
		return 0, false
	}
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return e.RetryAfter, e.RetryAfter <= p.MaxRetryAfter
	}
	pause = p.Cap
	// Beyond 30 doublings the pause is far over any cap, and would overflow.
	if n <= 30 && p.Base<<(n-1) < p.Cap {
		pause = p.Base << (n - 1)
	}
	half := pause / 2
	return half + time.Duration(p.Jitter()*float64(half)), true
}
