// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

// Changed returns the revision of the newest change to a resource, such as "providers.core.platform.ai", or a later one, for caches
// of what the database holds. A change counts before it is acknowledged. It reports false as long as no store serves the resource.
func (db *DB) Changed(resource string) (revision uint64, known bool) {
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
