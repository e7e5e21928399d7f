// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import "github.com/cockroachdb/pebble/v2/vfs"

const (
	logCategory, flushCategory, compactionCategory = "pebble-wal", "pebble-memtable-flush", "pebble-compaction"
	// logChunk is how many bytes of a write-ahead log are allocated in advance. Pebble would allocate 110 % of a memtable at once,
	// so a store that holds nothing yet would take 36 MB.
	logChunk = 4 << 20
)

// logFile is a write-ahead log that is allocated as it grows. It has one writer.
type logFile struct {
	vfs.File
	written, allocated int64
}

// Preallocate does nothing; Write allocates.
func (*logFile) Preallocate(int64, int64) error { return nil }

func (f *logFile) Write(p []byte) (int, error) {
	for f.written+int64(len(p)) > f.allocated {
		_ = f.File.Preallocate(f.allocated, logChunk) // only makes a sync faster
		f.allocated += logChunk
	}
	n, err := f.File.Write(p)
	f.written += int64(n)
	return n, err
}
