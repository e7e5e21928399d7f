// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// FullError is an engine.ErrFull with the measured sizes, in bytes.
type FullError struct {
	Dir           string
	Free, Reserve int64
	// FewInodes means that there is room, but not for enough new files: Inodes, of which KeptInodes are kept.
	FewInodes          bool
	Inodes, KeptInodes int64
}

// Error states the free space and what to do.
func (e *FullError) Error() string {
	if e.FewInodes {
		return fmt.Sprintf("%v: the volume of %s can hold %d more files, of which %d are kept for deleting; remove other files from it, or move the store to a volume with more inodes",
			engine.ErrFull, e.Dir, e.Inodes, e.KeptInodes)
	}
	return fmt.Sprintf("%v: the volume of %s has %d MiB free, of which %d MiB are kept for deleting; delete tasks that are not needed any more, or enlarge the volume",
		engine.ErrFull, e.Dir, e.Free>>20, e.Reserve>>20)
}

// Is makes every FullError an engine.ErrFull.
func (e *FullError) Is(target error) bool { return target == engine.ErrFull }

const (
	// ballastFile is preallocated beside the reserve, and removed when a store is opened on a full disk, when the log has no room, and
	// when even a write that makes room has none.
	ballastFile = "BALLAST"
	// maxReserve applies to a volume of 2 GiB or more, and the default memtable to one of 4 GiB or more. Smaller volumes use an
	// eighth and 1/128 of their size, so that all memtables and their logs fit in the reserve.
	maxReserve, minReserve = 256 << 20, 8 << 20
	minMemTable            = 1 << 20
	// keptInodes is how many files the volume must be able to hold for writes that add to the store: its logs, manifests and tables are new
	// files. On a volume that can hold few it is an eighth.
	keptInodes = 128
	// measureEvery is how old a measurement of free space may be.
	measureEvery = 100 * time.Millisecond
)

// space watches the free space of the store's volume. Bytes written since the last measurement count twice,
// once for the log and once for the table that they become, so that the reserve holds between two
// measurements.
type space struct {
	fs      vfs.FS
	dir     string
	log     logr.Logger
	clock   clock.PassiveClock
	reserve int64 // 0 if the file system does not report its free space

	free, total, spent atomic.Int64
	// inodes are free, and keep is how many have to be; 0 if the file system does not report them.
	inodes, keep atomic.Int64
	low          atomic.Bool

	mu      sync.Mutex // one measurement at a time
	looked  time.Time
	ballast bool
}

// watchSpace measures the volume of dir, and makes room for opening a store on a full one. A reserve of 0
// means the default, and a negative one means none.
func watchSpace(fs vfs.FS, o *Options, log logr.Logger) *space {
	s := &space{fs: fs, dir: o.Dir, log: log, clock: o.Clock}
	u, err := fs.GetDiskUsage(o.Dir)
	if err != nil || u.TotalBytes == 0 || o.Reserve < 0 {
		return s
	}
	total := int64(u.TotalBytes)
	s.reserve = o.Reserve
	if s.reserve == 0 {
		s.reserve = min(max(total/8, minReserve), maxReserve)
	}
	_, err = s.fs.Stat(s.ballastPath())
	s.ballast = err == nil
	s.measure()
	if s.available() < s.reserve/4 {
		s.dropBallast()
	}
	return s
}

// freeInodes returns how many files a volume can still hold and can hold in all; 0 if the file system does not report it, as btrfs.
func freeInodes(fs vfs.FS, dir string) (free, all int64) {
	if f, ok := fs.(interface{ Inodes() (free, all int64) }); ok {
		return f.Inodes()
	}
	var stat unix.Statfs_t
	if fs != vfs.Default || unix.Statfs(dir, &stat) != nil || stat.Files > math.MaxInt64 {
		return 0, 0
	}
	return int64(stat.Ffree), int64(stat.Files)
}

// memTable returns the size of memtables on this volume, in bytes.
func (s *space) memTable() int64 {
	if s.reserve == 0 {
		return defaultMemTable
	}
	return min(max(s.total.Load()/128, minMemTable), defaultMemTable)
}

func (s *space) ballastPath() string { return s.fs.PathJoin(s.dir, ballastFile) }

// available returns the measured free space, less the bytes written since.
func (s *space) available() int64 { return s.free.Load() - 2*s.spent.Load() }

// check returns a *FullError for a write for which there is no room.
func (s *space) check(n engine.Need) error {
	if s.reserve == 0 {
		return nil
	}
	if s.clock.Since(s.lookedAt()) >= measureEvery || s.spent.Load() > s.reserve/16 {
		s.measure()
	}
	least, inodes := s.reserve, s.keep.Load()
	switch n {
	case engine.Grow:
	case engine.Nothing:
		return nil
	case engine.Upkeep:
		least, inodes = least/2, inodes/2
	case engine.Free:
		if least, inodes = least/32, inodes/32; s.available() < least || s.inodes.Load() < inodes {
			s.dropBallast()
			s.measure()
		}
	}
	if free := s.inodes.Load(); free < inodes {
		return &FullError{Dir: s.dir, FewInodes: true, Inodes: free, KeptInodes: s.keep.Load()}
	}
	if s.available() >= least {
		return nil
	}
	return &FullError{Dir: s.dir, Free: max(s.available(), 0), Reserve: s.reserve}
}

func (s *space) lookedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked
}

// measure asks the file system. If that fails, the last measurement stays valid.
func (s *space) measure() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = s.clock.Now()
	u, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		return
	}
	s.free.Store(int64(u.AvailBytes))
	s.total.Store(int64(u.TotalBytes))
	s.spent.Store(0)
	inodes, all := freeInodes(s.fs, s.dir)
	s.inodes.Store(inodes)
	s.keep.Store(min(keptInodes, all/8))
	free := s.free.Load()
	low := free < s.reserve || inodes < s.keep.Load()
	if s.low.Swap(low) != low {
		s.say(low, free, inodes)
	}
	if !low && !s.ballast && free > s.reserve+2*s.ballastSize() {
		s.ballast = s.makeBallast() == nil
	}
}

// say logs that the disk is full, as an error because it needs an operator, or not any more.
func (s *space) say(full bool, free, inodes int64) {
	values := []any{"dir", s.dir, "freeBytes", free, "reserveBytes", s.reserve, "freeInodes", inodes, "reserveInodes", s.keep.Load()}
	if full {
		s.log.Error(nil, "The disk is full: writes that add to the store are refused", values...)
	} else {
		s.log.Info("The disk has room again", values...)
	}
}

// ballastSize returns the size of a file that is removed when space runs out, for opening a store on a full
// disk and for its last deletes.
func (s *space) ballastSize() int64 { return s.reserve / 4 }

func (s *space) makeBallast() error {
	f, err := s.fs.Create(s.ballastPath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	return errors.Join(f.Preallocate(0, s.ballastSize()), f.Close())
}

func (s *space) dropBallast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ballast {
		return
	}
	if err := s.fs.Remove(s.ballastPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Error(err, "The ballast of a full disk cannot be removed", "dir", s.dir)
		return
	}
	s.ballast = false
	s.log.Info("The disk is full; removed the ballast file to make room", "dir", s.dir, "bytes", s.ballastSize())
}

// wrap returns the file system as Pebble sees it. A write that finds the disk full is repeated once after
// the ballast is removed, because a failed write to the log would end the process. Compactions leave a
// quarter of the reserve to all other writes, which would otherwise have no room to delete anything.
func (s *space) wrap(fs vfs.FS) vfs.FS {
	if s.reserve == 0 {
		return fs
	}
	return spaceFS{vfs.OnDiskFull(fs, s.dropBallast), s}
}

type spaceFS struct {
	vfs.FS
	space *space
}

// Create creates a file. Files of compactions are subject to the limit that wrap describes.
func (f spaceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	background := c == compactionCategory || c == flushCategory
	file, err := f.FS.Create(name, c)
	switch {
	case err == nil && c == compactionCategory:
		file = compacted{file, f.space}
	case err == nil && background:
		file = flushed{file}
	case background:
		pauseIfFull(err)
	}
	return file, err
}

// flushed is a table of a flush.
type flushed struct{ vfs.File }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	pauseIfFull(err)
	return n, err
}

// pauseIfFull slows down background work that found the disk full.
func pauseIfFull(err error) {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		time.Sleep(scarcePause) //nolint:forbidigo // Pebble repeats it at once
	}
}

// Unwrap returns the underlying file system, for vfs.Root.
func (f spaceFS) Unwrap() vfs.FS { return f.FS }

type compacted struct {
	vfs.File
	space *space
}

func (c compacted) Write(p []byte) (int, error) {
	s := c.space
	if s.clock.Since(s.lookedAt()) >= measureEvery {
		s.measure()
	}
	if s.free.Load() < s.reserve/4 || s.inodes.Load() < s.keep.Load()/4 {
		err := fmt.Errorf("compaction: %w", syscall.ENOSPC)
		pauseIfFull(err)
		return 0, err
	}
	return c.File.Write(p)
}

// Room returns the error with which Commit would refuse a write of about size bytes. It is for writes made with Apply.
func (e *Engine) Room(n engine.Need, size int) error {
	if err := e.space.check(n); err != nil {
		return err
	}
	e.space.spent.Add(int64(size))
	return nil
}

// Full reports whether the free space of the volume is below the reserve.
func (e *Engine) Full() bool {
	if e.space.reserve > 0 && e.opts.Clock.Since(e.space.lookedAt()) >= measureEvery {
		e.space.measure()
	}
	return e.space.low.Load()
}

func needOf(t engine.Txn) engine.Need {
	if n, ok := t.(engine.Needer); ok {
		return n.Need()
	}
	return engine.Grow
}
