// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
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

// open bounds how many events of each gateway have not ended. It remembers how many there are at most: those that were counted, and all that came
// since. So they are counted again only when there may be too many. Events that arrive at once may together pass the bound.
type open struct {
	limit int
	// count returns how many events of a gateway have not ended, and at most limit.
	count func(g *v1alpha1.Gateway, limit int) (int, error)

	mu   sync.Mutex
	most map[types.UID]int
}

// take adds an event of a gateway, or refuses it because there are too many.
func (o *open) take(g *v1alpha1.Gateway) error {
	o.mu.Lock()
	n, known := o.most[g.UID]
	room := known && n < o.limit
	if room {
		o.most[g.UID]++
	}
	o.mu.Unlock()
	if room {
		return nil
	}
	n, err := o.count(g, o.limit)
	if err != nil {
		return err
	}
	if n >= o.limit {
		return apierrors.NewTooManyRequests(fmt.Sprintf("the gateway has %d events that are not answered yet", n), retryAfter)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most[g.UID] = n + 1
	return nil
}

// add adds an event of a gateway whether there is room or not.
func (o *open) add(gateway types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.most[gateway]; known {
		o.most[gateway]++
	}
}

func (o *open) forget(gateway types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.most, gateway)
}
