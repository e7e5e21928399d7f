// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/connector/oauth"
)

const (
	// firstPause follows the first failure, and doubles with each further one up to longestPause.
	firstPause, longestPause = 5 * time.Second, 5 * time.Minute
	// longestAsked is the longest pause that a provider can ask for.
	longestAsked = 15 * time.Minute
)

// pauseAfter returns how long nothing is sent after so many failures in a row, when the provider asked for a pause; 0 if it did not.
func pauseAfter(failures int, asked time.Duration) time.Duration {
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longestPause {
			pause = longestPause
			break
		}
	}
	return max(pause, min(asked, longestAsked))
}

// pause is the time after a refresh that failed, in which nothing is sent. It is in memory alone: a restart ends it.
type pause struct {
	sequence int64 // of the grant, so that another consent is not held up
	failures int
	until    time.Time
	failure  *oauth.Error
}

// pauses are those of all connections.
type pauses struct {
	mu sync.Mutex
	of map[types.UID]*pause
}

// current returns the pause of a grant; nil if it is over, or there is none.
func (p *pauses) current(uid types.UID, sequence int64, now time.Time) *pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.of[uid]; at != nil && at.sequence == sequence && now.Before(at.until) {
		return at
	}
	return nil
}

// begin begins the pause after a failure.
func (p *pauses) begin(uid types.UID, sequence int64, failure *oauth.Error, now time.Time) *pause {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := &pause{sequence: sequence, failures: 1, failure: failure}
	if before := p.of[uid]; before != nil && before.sequence == sequence {
		next.failures += before.failures
	}
	next.until = now.Add(pauseAfter(next.failures, failure.RetryAfter))
	p.of[uid] = next
	return next
}

// end forgets the failures of a connection.
func (p *pauses) end(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, uid)
}
