// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// Rates at which events may arrive: of all together that have the token of their gateway, and of one address, whoever sends them. So whoever has
// no token uses up nothing of what others need.
const (
	allPerSecond, allBurst = 500, 2000
	onePerSecond, oneBurst = 100, 1000
	// network is how many bits of an IPv6 address tell customers apart: each has at least one such network.
	network = 64
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
	now := r.clock.Now()
	return r.of(hostOf(remote), now).AllowN(now, 1)
}

// takeOfAll reports whether one more event with the token of its gateway may arrive.
func (r *rates) takeOfAll() bool { return r.all.AllowN(r.clock.Now(), 1) }

// hostOf returns what counts as one address.
func hostOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := a.Addr().Unmap().WithZone("")
	if p, err := ip.Prefix(network); err == nil && ip.Is6() {
		return p.String()
	}
	return ip.String()
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
