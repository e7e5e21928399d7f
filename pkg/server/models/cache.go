// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// maxCached bounds how many values of one cache are kept.
	maxCached = 4096
	// secretAge is how long the key of a Secret is used that another server stores. A key that its vendor refuses is read
	// again at once.
	secretAge = 10 * time.Second
)

// cache keeps what was read of one resource until the resource changes. Whoever waits for a write to be acknowledged
// therefore reads what it wrote.
type cache[K comparable, V any] struct {
	// changed returns the revision of the newest change to the resource; false if that is not known.
	changed func() (uint64, bool)
	// age is how long values are kept if changes are not known; 0 for not at all.
	age   time.Duration
	clock clock.PassiveClock

	mu  sync.Mutex
	rev uint64 // of all values
	all map[K]cached[V]
}

type cached[V any] struct {
	value V
	read  time.Time
}

// changesOf returns the changed of a cache of one resource. all may be nil.
func changesOf(all func(resource string) (uint64, bool), resource string) func() (uint64, bool) {
	if all == nil {
		return func() (uint64, bool) { return 0, false }
	}
	return func() (uint64, bool) { return all(resource) }
}

// get returns the value of a key, and reads it if it is not kept. What read refuses with an error is not kept.
func (c *cache[K, V]) get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	rev, known := c.changed()
	if !known && c.age == 0 {
		return read(ctx)
	}
	c.mu.Lock()
	if known && rev > c.rev {
		c.rev, c.all = rev, nil
	}
	found, ok := c.all[key]
	c.mu.Unlock()
	if ok && (known || c.clock.Since(found.read) < c.age) {
		return found.value, nil
	}
	began := c.clock.Now()
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

// forget makes the next get of a key read it.
func (c *cache[K, V]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, key)
}
