// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package serverbench

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// fsyncRate appends 1 KiB and syncs, from one thread, for d; it returns syncs a
// second and the median time of one.
func fsyncRate(dir string, d time.Duration) (perSecond float64, median time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 1024)
	var times []time.Duration
	from := time.Now()
	for time.Since(from) < d {
		at := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(at))
	}
	all := time.Since(from)
	slices.Sort(times)
	return float64(len(times)) / all.Seconds(), times[len(times)/2], nil
}
