// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"os"
	"path/filepath"
	"time"
)

// fsyncRate appends 1 KiB and syncs, from one thread, for d; it returns syncs a second.
func fsyncRate(dir string, d time.Duration) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 1024)
	syncs := 0
	from := time.Now()
	for time.Since(from) < d {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		syncs++
	}
	return float64(syncs) / time.Since(from).Seconds(), nil
}
