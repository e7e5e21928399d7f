// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readcache keeps what was read of one resource until the resource changes. Whoever waits for a write to be acknowledged
// therefore reads what it wrote.
package readcache

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxCached bounds how many values of one cache are kept.
const maxCached = 4096

// Cache keeps what was read of one resource. The values are shared, so whoever gets one must not change it. Its exported fields are set
// before it is used; Changed and Clock are required. All methods may be called concurrently.
type Cache[K comparable, V any] struct {
	// Changed returns the revision of the newest change to the resource; false if that is not known.
	Changed func() (uint64, bool)
	// Age is how long values are kept if changes are not known; 0 for not at all.
	Age   time.Duration
	Clock clock.PassiveClock

	mu  sync.Mutex
	rev uint64 // of all values
	all map[K]cached[V]
}

type cached[V any] struct {
	value V
	read  time.Time
}

// ChangesOf returns the Changed of a Cache of one resource, such as "providers.core.platform.ai". all returns the revision of the
// newest change to a resource, or false if that is not known; nil knows of none.
func ChangesOf(all func(resource string) (uint64, bool), resource string) func() (uint64, bool) {
	if all == nil {
		return func() (uint64, bool) { return 0, false }
	}
	return func() (uint64, bool) { return all(resource) }
}

// Get returns the value of a key, and reads it if it is not kept. What read refuses with an error is not kept.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	rev, known := c.Changed()
	if !known && c.Age == 0 {
		return read(ctx)
	}
	c.mu.Lock()
	if known && rev > c.rev {
		c.rev, c.all = rev, nil
	}
	found, ok := c.all[key]
	c.mu.Unlock()
	if ok && (known || c.Clock.Since(found.read) < c.Age) {
		return found.value, nil
	}
	began := c.Clock.Now()
	value, err := read(ctx)
	if err != nil {
		return value, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known && c.rev != rev { // it may be older than the change
		return value, nil
	}
	if c.all == nil || len(c.all) >= maxCached {
		c.all = map[K]cached[V]{}
	}
	c.all[key] = cached[V]{value, began}
	return value, nil
}

// Forget makes the next Get of a key read it.
func (c *Cache[K, V]) Forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, key)
}
