// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/utils/clock"
)

// hangAfter is how long the disk may take to answer before the store counts as not ready.
const hangAfter = 2 * time.Second

// disk knows which operations of the file system have not returned yet. Checking that starts no timer: whoever asks compares
// the oldest one with the clock. Times are nanoseconds since the disk was opened, by the monotonic clock: a clock that is set, or a
// machine that slept, says nothing about the disk.
type disk struct {
	clock  clock.PassiveClock
	opened time.Time
	// began holds when operations in progress began; 0 is free. Operations that find no slot are not observed.
	began [64]atomic.Int64
	// slow is called once for an operation that takes too long.
	slow func(took time.Duration)
	// counted is when the operation began that slow was last called for.
	counted atomic.Int64
	// done is when an operation last ended.
	done atomic.Int64
}

func newDisk(c clock.PassiveClock, slow func(took time.Duration)) *disk {
	return &disk{clock: c, opened: c.Now(), slow: slow}
}

// now is never 0.
func (d *disk) now() int64 { return max(int64(d.clock.Since(d.opened)), 0) + 1 }

// run observes an operation.
func (d *disk) run(op func()) {
	now := d.now()
	for i := range d.began {
		if slot := &d.began[i]; slot.Load() == 0 && slot.CompareAndSwap(0, now) {
			op()
			slot.Store(0)
			end := d.now()
			d.done.Store(end)
			d.note(now, end)
			return
		}
	}
	op()
}

// waits returns how long the oldest operation in progress has taken.
func (d *disk) waits() time.Duration {
	oldest, now := int64(0), d.now()
	for i := range d.began {
		if began := d.began[i].Load(); began != 0 && (oldest == 0 || began < oldest) {
			oldest = began
		}
	}
	if oldest == 0 {
		return 0
	}
	d.note(oldest, now)
	return time.Duration(now - oldest)
}

// note reports an operation that takes too long, once.
func (d *disk) note(began, now int64) {
	took := time.Duration(now - began)
	if last := d.counted.Load(); took > hangAfter && began > last && d.counted.CompareAndSwap(last, began) {
		d.slow(took)
	}
}

// idle reports whether no operation is in progress and none has ended for a while, so that nothing is known about the disk.
func (d *disk) idle() bool {
	return d.waits() == 0 && d.now()-d.done.Load() > int64(hangAfter/2)
}

// hangs returns an error if the disk does not answer.
func (d *disk) hangs() error {
	if took := d.waits(); took > hangAfter {
		return fmt.Errorf("the disk has not answered for %d s", int(took.Seconds()))
	}
	return nil
}

// observed observes what a file system does with a disk.
type observed struct {
	vfs.FS
	disk *disk
	wait *patience
}

func (o observed) file(wait func(func() error) error, open func() (vfs.File, error)) (f vfs.File, err error) {
	err = wait(func() error {
		o.disk.run(func() { f, err = open() })
		return err
	})
	if err != nil {
		return nil, err
	}
	return observedFile{f, o.disk, o.wait}, nil
}

func (o observed) written(name string, c vfs.DiskWriteCategory, open func() (vfs.File, error)) (vfs.File, error) {
	wait := o.wait.create
	if c != flushCategory && c != compactionCategory && o.PathBase(o.PathDir(name)) != checkpointDir {
		wait = o.wait.createAnyway
	}
	f, err := o.file(wait, open)
	switch {
	case c == flushCategory:
		o.wait.flush(err)
		f = flushFile{f, o.wait}
	case err == nil && c == logCategory:
		f = &logFile{File: f}
	}
	return f, err
}

func (o observed) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.written(name, c, func() (vfs.File, error) { return o.FS.Create(name, c) })
}

func (o observed) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.file(o.wait.out, func() (vfs.File, error) { return o.FS.Open(name, opts...) })
}

func (o observed) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return o.file(o.wait.out, func() (vfs.File, error) { return o.FS.OpenReadWrite(name, c, opts...) })
}

// OpenDir waits like Create, because the folder of a new log is synced before the log is used.
func (o observed) OpenDir(name string) (vfs.File, error) {
	return o.file(o.wait.create, func() (vfs.File, error) { return o.FS.OpenDir(name) })
}

func (o observed) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return o.written(newname, c, func() (vfs.File, error) { return o.FS.ReuseForWrite(oldname, newname, c) })
}

func (o observed) do(op func() error) (err error) {
	return o.wait.out(func() error {
		o.disk.run(func() { err = op() })
		return err
	})
}

func (o observed) Rename(oldname, newname string) error {
	return o.do(func() error { return o.FS.Rename(oldname, newname) })
}

func (o observed) Remove(name string) (err error) {
	o.disk.run(func() { err = o.FS.Remove(name) })
	return err
}

func (o observed) Lock(name string) (l io.Closer, err error) {
	err = o.do(func() (err error) { l, err = o.FS.Lock(name); return err })
	return l, err
}

func (o observed) MkdirAll(dir string, perm os.FileMode) error {
	return o.do(func() error { return o.FS.MkdirAll(dir, perm) })
}

func (o observed) List(dir string) (names []string, err error) {
	err = o.do(func() (err error) { names, err = o.FS.List(dir); return err })
	return names, err
}

// Unwrap returns the underlying file system, for vfs.Root.
func (o observed) Unwrap() vfs.FS { return o.FS }

// flushFile is a table of a flush.
type flushFile struct {
	vfs.File
	wait *patience
}

func (f flushFile) Write(p []byte) (n int, err error) {
	n, err = f.File.Write(p)
	f.wait.flush(err)
	return n, err
}

func (f flushFile) Sync() error {
	err := f.File.Sync()
	f.wait.flush(err)
	return err
}

// observedFile observes the operations that wait for the disk.
type observedFile struct {
	vfs.File
	disk *disk
	wait *patience
}

func (f observedFile) Write(p []byte) (n int, err error) {
	err = f.wait.out(func() error {
		f.disk.run(func() {
			var written int
			written, err = f.File.Write(p[n:])
			n += written
		})
		return err
	})
	return n, err
}

func (f observedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.wait.out(func() error {
		f.disk.run(func() { n, err = f.File.WriteAt(p, off) })
		return err
	})
	return n, err
}

func (f observedFile) ReadAt(p []byte, off int64) (n int, err error) {
	f.disk.run(func() { n, err = f.File.ReadAt(p, off) })
	return n, err
}

func (f observedFile) Sync() (err error) {
	f.disk.run(func() { err = f.File.Sync() })
	return err
}

func (f observedFile) SyncData() (err error) {
	f.disk.run(func() { err = f.File.SyncData() })
	return err
}

func (f observedFile) SyncTo(length int64) (full bool, err error) {
	f.disk.run(func() { full, err = f.File.SyncTo(length) })
	return full, err
}
