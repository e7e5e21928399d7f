// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localtest has a disk in memory that loses power and fails on demand,
// for tests of the engine and of what is built on it.
package localtest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// Dir is a directory whose parent exists on every Disk.
const Dir = "store"

// ErrInjected is what a failing disk answers.
var ErrInjected = errors.New("localtest: injected disk error")

// Disk is a file system in memory. It is safe for concurrent use.
type Disk struct {
	mem   *vfs.MemFS
	fault atomic.Pointer[func(op Op) error]
	usage atomic.Pointer[vfs.DiskUsage]
}

// Kind is what an operation does.
type Kind int

// Kinds of operations that change what is on disk.
const (
	Other Kind = iota
	Write
	Sync
)

// Op is an operation that changes what is on disk.
type Op struct {
	Kind Kind
	Path string
}

// Log says whether the operation is on the write-ahead log.
func (o Op) Log() bool { return strings.HasSuffix(o.Path, ".log") }

// NewDisk returns an empty disk.
func NewDisk() *Disk { return &Disk{mem: vfs.NewCrashableMem()} }

// FS is the disk as the engine sees it.
func (d *Disk) FS() local.FS {
	return sized{FS: errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		f := d.fault.Load()
		if f == nil || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		o := Op{Path: op.Path}
		switch op.Kind {
		case errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileFlush:
			o.Kind = Write
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			o.Kind = Sync
		}
		return (*f)(o)
	})), d: d}
}

// SetSpace makes the disk tell that it has so many bytes, and so many of them free; it stores more all the same. A new
// disk does not tell.
func (d *Disk) SetSpace(total, free uint64) {
	d.usage.Store(&vfs.DiskUsage{TotalBytes: total, AvailBytes: free, UsedBytes: total - free})
}

// sized is a file system of a certain size.
type sized struct {
	local.FS
	d *Disk
}

func (s sized) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if u := s.d.usage.Load(); u != nil {
		return *u, nil
	}
	return s.FS.GetDiskUsage(path)
}

// Fail asks f about every operation that changes the disk from now on; an error
// it returns is the operation's. A nil f ends that. f must be safe for concurrent use.
func (d *Disk) Fail(f func(Op) error) {
	if f == nil {
		d.fault.Store(nil)
		return
	}
	d.fault.Store(&f)
}

// Crash returns the disk as it may be found after the power went now: everything
// that was synced, and each piece that was not with a chance of unsynced percent.
// The disk itself goes on. Which pieces differs from run to run, also with one seed: files come in no certain order.
func (d *Disk) Crash(unsynced int, seed uint64) *Disk {
	return &Disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(seed, 0))})}
}
