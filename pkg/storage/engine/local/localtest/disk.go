// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localtest provides a disk in memory that loses power and fails on demand, for tests of the engine
// and of the packages built on it.
package localtest

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// Dir is a directory whose parent exists on every Disk.
const Dir = "store"

// ErrInjected is the error that a failing disk returns.
var ErrInjected = errors.New("injected disk error")

// Disk is a file system in memory. It is safe for concurrent use.
type Disk struct {
	mem   *vfs.MemFS
	fault atomic.Pointer[func(op Op) error]
	usage atomic.Pointer[vfs.DiskUsage]
	files atomic.Pointer[[2]int64]
	hang  atomic.Pointer[chan struct{}]
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

// Log reports whether the operation is on the write-ahead log.
func (o Op) Log() bool { return strings.HasSuffix(o.Path, ".log") }

// NewDisk returns an empty disk.
func NewDisk() *Disk { return &Disk{mem: vfs.NewCrashableMem()} }

// FS returns the disk as a file system for the engine.
func (d *Disk) FS() local.FS {
	return sized{FS: errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if h := d.hang.Load(); h != nil {
			<-*h
		}
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

// SetSpace sets the total and the free bytes that the disk reports. It does not limit what the disk stores.
// A new disk does not report its space.
func (d *Disk) SetSpace(total, free uint64) {
	d.usage.Store(&vfs.DiskUsage{TotalBytes: total, AvailBytes: free, UsedBytes: total - free})
}

// SetInodes sets how many files the disk reports it can still hold, and in all. It does not limit how many it holds. A new
// disk does not report them.
func (d *Disk) SetInodes(free, all int64) { d.files.Store(&[2]int64{free, all}) }

// Inodes returns what SetInodes set.
func (s sized) Inodes() (free, all int64) {
	if f := s.d.files.Load(); f != nil {
		return f[0], f[1]
	}
	return 0, 0
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

// Fail makes the disk call f for every operation that changes it from now on. If f returns an error, the
// operation fails with it. A nil f ends that. f must be safe for concurrent use.
func (d *Disk) Fail(f func(Op) error) {
	if f == nil {
		d.fault.Store(nil)
		return
	}
	d.fault.Store(&f)
}

// Hang makes the disk answer nothing until resume is called.
func (d *Disk) Hang() (resume func()) {
	h := make(chan struct{})
	d.hang.Store(&h)
	return func() {
		d.hang.Store(nil)
		close(h)
	}
}

// Crash returns the disk as it may be found after a power failure at this moment. It holds everything that
// was synced, and each unsynced piece with a probability of unsynced percent. The original disk keeps
// working. The pieces that are kept differ between runs even with the same seed, because the order of files
// is not fixed.
func (d *Disk) Crash(unsynced int, seed uint64) *Disk {
	return &Disk{mem: d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(seed, 0))})}
}

// Read returns the content of a file, as an operator who copies files does.
func (d *Disk) Read(path string) ([]byte, error) {
	f, err := d.mem.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// Write makes or replaces a file.
func (d *Disk) Write(path string, content []byte) error {
	f, err := d.mem.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}
