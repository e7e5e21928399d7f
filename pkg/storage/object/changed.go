// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

// Changed returns a func for caches of what the database holds. It returns the revision of the newest change to a resource,
// such as "providers.core.platform.ai", or a later one. A change counts before it is acknowledged. The func reports false as
// long as no store serves the resource.
func Changed(db *DB) func(resource string) (revision uint64, known bool) {
	return func(resource string) (uint64, bool) {
		db.mu.Lock()
		defer db.mu.Unlock()
		for _, t := range db.topics {
			if t.resource == resource {
				t.mu.RLock()
				defer t.mu.RUnlock()
				return t.lastRev, true
			}
		}
		return 0, false
	}
}
