// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// Rates at which events may arrive, whoever sends them: of all together, and of one address.
const (
	allPerSecond, allBurst = 500, 2000
	onePerSecond, oneBurst = 100, 1000
	// maxAddresses is how many addresses are told apart. The one that was seen least recently makes room for another.
	maxAddresses = 1024
	// forgotten is how long after its last event an address has a full burst again.
	forgotten = 10 * time.Minute
)

// rates limit how many events arrive.
type rates struct {
	clock clock.PassiveClock
	all   *rate.Limiter

	mu  sync.Mutex
	one map[string]*address
}

type address struct {
	limit *rate.Limiter
	seen  time.Time
}

func newRates(c clock.PassiveClock) *rates {
	return &rates{clock: c, all: rate.NewLimiter(allPerSecond, allBurst), one: map[string]*address{}}
}

// take reports whether one more event of an address may arrive.
func (r *rates) take(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	now := r.clock.Now()
	return r.of(host, now).AllowN(now, 1) && r.all.AllowN(now, 1)
}

// of returns the limit of an address.
func (r *rates) of(host string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.one[host]
	if !ok {
		if len(r.one) >= maxAddresses {
			r.evict(now)
		}
		a = &address{limit: rate.NewLimiter(onePerSecond, oneBurst)}
		r.one[host] = a
	}
	a.seen = now
	return a.limit
}

// evict forgets the addresses that were not seen for long, or else the one that was seen least recently.
func (r *rates) evict(now time.Time) {
	oldest := ""
	for host, a := range r.one {
		if now.Sub(a.seen) >= forgotten {
			delete(r.one, host)
		} else if oldest == "" || a.seen.Before(r.one[oldest].seen) {
			oldest = host
		}
	}
	if len(r.one) >= maxAddresses {
		delete(r.one, oldest)
	}
}
