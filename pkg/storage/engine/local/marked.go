// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr"
)

// markedFS keeps the mark of a store up to date while Pebble makes and removes write-ahead logs. A log is in the mark before
// its first record is written, and leaves it before the file is removed. A crash at any moment therefore leaves no log in
// the mark that is missing on disk. How much of the newest log and of the manifest is durable is noted after each sync.
type markedFS struct {
	vfs.FS
	dir      string
	revision func() uint64
	logger   logr.Logger
	// reached is that of m.
	reached atomic.Pointer[reached]

	mu sync.Mutex
	m  *mark // nil if there is none yet
	// opening holds the logs that were made before the store was known to be the one of the mark. Nothing is acknowledged
	// in them until settle adds them.
	opening []markLog
	settled bool
}

// number returns the number of a file of the store with that prefix and suffix; ok is false for other files.
func (f *markedFS) number(path, prefix, suffix string) (n uint64, ok bool) {
	if f.PathDir(path) != f.dir {
		return 0, false
	}
	return fileNumber(f.PathBase(path), prefix, suffix)
}

func fileNumber(name, prefix, suffix string) (n uint64, ok bool) {
	digits, is := strings.CutPrefix(name, prefix)
	if !is {
		return 0, false
	}
	if digits, is = strings.CutSuffix(digits, suffix); !is {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

func (f *markedFS) log(path string) (n uint64, ok bool) { return f.number(path, "", ".log") }

// Create creates a file. A log is durable in its directory before it is in the mark.
func (f *markedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	if err != nil {
		return file, err
	}
	if n, isManifest := f.number(name, manifestPrefix, ""); isManifest {
		return f.appended(file, func(s *reachedState, bytes int64) { s.Manifest, s.ManifestBytes = n, bytes }), nil
	}
	n, isLog := f.log(name)
	if !isLog {
		return file, nil
	}
	if err := f.begin(markLog{Number: n}, func() error { return syncDir(f.FS, f.dir) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f.appendedLog(file, n), nil
}

func (f *markedFS) appendedLog(file vfs.File, n uint64) vfs.File {
	return f.appended(file, func(s *reachedState, bytes int64) { s.Log, s.LogBytes = n, bytes })
}

// appended returns a file of which it is noted how much is durable.
func (f *markedFS) appended(file vfs.File, set func(s *reachedState, bytes int64)) vfs.File {
	return &appended{File: file, durable: func(bytes int64) {
		if r := f.reached.Load(); r != nil {
			r.note(func(s *reachedState) { set(s, bytes) })
		}
	}}
}

// ReuseForWrite makes a log of one that is not needed any more.
func (f *markedFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	from, isLog := f.log(oldname)
	n, isToo := f.log(newname)
	if isLog && isToo {
		if err := f.begin(markLog{Number: n, From: from}, func() error { return nil }); err != nil {
			return nil, err
		}
	}
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	if err == nil && isToo {
		file = f.appendedLog(file, n)
	}
	return file, err
}

// begin adds a log, and drops the one that it is made of. ready is called if the log must exist first.
func (f *markedFS) begin(l markLog, ready func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.settled {
		f.opening = append(f.opening, l)
		return nil
	}
	if f.m == nil {
		return nil
	}
	if err := ready(); err != nil {
		return err
	}
	revision := f.revision()
	return f.m.update(func(s *markState) {
		s.Logs = append(without(s.Logs, l.From), l)
		s.Logs = s.Logs[max(0, len(s.Logs)-markLogs):]
		s.Revision = max(s.Revision, revision)
	})
}

// Remove removes a file. A log leaves the mark first.
func (f *markedFS) Remove(name string) error {
	if n, isLog := f.log(name); isLog {
		if err := f.drop(n); err != nil {
			return err
		}
	}
	return f.FS.Remove(name)
}

func (f *markedFS) drop(n uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opening = without(f.opening, n)
	if f.m == nil || !f.m.has(n) {
		return nil
	}
	revision := f.revision()
	return f.m.update(func(s *markState) {
		s.Logs = without(s.Logs, n)
		if f.settled {
			s.Revision = max(s.Revision, revision)
		}
	})
}

// settle records the state of the opened store. It makes the mark if there is none.
func (f *markedFS) settle(path string, state markState) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state.Logs = f.opening
	f.settled, f.opening = true, nil
	if f.m == nil {
		f.m, err = createMark(f.FS, path, state)
	} else {
		err = f.m.update(func(s *markState) { *s = state })
	}
	if err != nil {
		return err
	}
	f.follow(f.m)
	manifestBytes, err := intact(f.FS, f.PathJoin(f.dir, manifestName(state.Manifest)), 0)
	if err != nil {
		return err
	}
	newest := uint64(0)
	for _, l := range state.Logs {
		newest = max(newest, l.Number)
	}
	return f.m.reached.settle(newest, state.Manifest, manifestBytes)
}

// follow notes in a mark how much of the newest files is durable.
func (f *markedFS) follow(m *mark) {
	if m != nil && f.reached.Load() == nil {
		m.reached.log, m.reached.revision = f.logger, f.revision
		f.reached.Store(m.reached)
	}
}

// refresh records the revision that is durable now.
func (f *markedFS) refresh() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil || !f.settled {
		return nil
	}
	revision := f.revision()
	return f.m.update(func(s *markState) { s.Revision = max(s.Revision, revision) })
}

// Unwrap returns the underlying file system, for vfs.Root.
func (f *markedFS) Unwrap() vfs.FS { return f.FS }

// without removes a log that is not needed any more. If it was to become another one and still exists, the other one never
// began.
func without(logs []markLog, n uint64) []markLog {
	return slices.DeleteFunc(slices.Clone(logs), func(l markLog) bool { return l.Number == n || l.From == n && n != 0 })
}

// finish records what a store that was closed without an error holds.
func (f *markedFS) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil || !f.settled {
		return nil
	}
	manifest, err := newest(f.FS, f.dir, manifestPrefix, "")
	if err != nil {
		return err
	}
	size := func(name string) int64 {
		info, err := f.FS.Stat(f.PathJoin(f.dir, name))
		if err != nil {
			return 0 // not known
		}
		return info.Size()
	}
	revision := f.revision()
	return f.m.update(func(s *markState) {
		s.Revision = revision
		for i := range s.Logs {
			s.Logs[i].Bytes = size(logName(s.Logs[i].Number))
		}
		s.Manifest, s.ManifestBytes = manifest, size(manifestName(manifest))
	})
}

// run syncs in the background what was noted.
func (f *markedFS) run(ctx context.Context) {
	if f == nil {
		return
	}
	if r := f.reached.Load(); r != nil {
		r.run(ctx)
	}
}

func (f *markedFS) close() error {
	if r := f.reached.Load(); r != nil {
		r.stop()
	}
	return f.m.close()
}

// newest returns the highest number of the files in dir with that prefix and suffix; 0 if there is none.
func newest(fs vfs.FS, dir, prefix, suffix string) (highest uint64, err error) {
	names, err := fs.List(dir)
	for _, name := range names {
		if n, ok := fileNumber(name, prefix, suffix); ok {
			highest = max(highest, n)
		}
	}
	return highest, err
}

func logName(n uint64) string      { return fmt.Sprintf("%06d.log", n) }
func manifestName(n uint64) string { return fmt.Sprintf("%s%06d", manifestPrefix, n) }
