// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/platform-ai/platform/pkg/worker/spool"
)

// usage measures what a folder takes on disk, now and then. Only the watch of a run uses it.
type usage struct {
	dir      string
	measured chan int64
	began    time.Time // of the measurement that is under way
	next     time.Time
}

// measureShare bounds the time that measuring takes: a measurement of one second is followed by a pause of 20.
const measureShare = 20

func newUsage(dir string) *usage { return &usage{dir: dir, measured: make(chan int64, 1)} }

// start begins a measurement if none is under way and it is time for one.
func (u *usage) start(now time.Time) {
	if !u.began.IsZero() || now.Before(u.next) {
		return
	}
	u.began = now
	go func() { u.measured <- diskBytes(u.dir) }()
}

// done ends the measurement, whose result was received.
func (u *usage) done(now time.Time) {
	u.next = now.Add(measureShare * now.Sub(u.began))
	u.began = time.Time{}
}

// inode identifies a file that has several names.
type inode struct{ device, number uint64 }

// minFile is what the smallest file counts for, in bytes, so that a run cannot use up the inodes of a volume either.
const minFile = 512

// diskBytes returns what the files of a folder take on disk. What cannot be read counts nothing: it vanished meanwhile, or
// is in a folder that the run closed to itself, too.
func diskBytes(dir string) int64 {
	var sum int64
	seen := map[inode]bool{}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if st.Nlink > 1 && !d.IsDir() {
			id := inode{st.Dev, st.Ino}
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		sum += max(minFile, 512*st.Blocks)
		return nil
	})
	return sum
}

// empty removes everything but the record from the folder of a run that is over, if the server has stored what it left. What
// a killed worker left is delivered first, and its folder is emptied after that. A folder stays as it is as long as it holds
// events, log, a result or artifacts that the server may lack, and is deleted with its task.
func (e *Executor) empty(dir string, rec *record) {
	if e.opts.Keep || !stored(dir) {
		return
	}
	names, err := os.ReadDir(dir)
	for _, d := range names {
		if d.Name() != recordName && err == nil {
			err = removeAll(filepath.Join(dir, d.Name()))
		}
	}
	if err != nil {
		e.log.Error(err, "Cannot empty the folder of a run", "run", rec.ref().String())
	}
}

func stored(dir string) bool {
	queue := filepath.Join(dir, spoolName)
	if spool.Stored(queue) {
		return true
	}
	// A worker that was killed before its work was over, and whose events and log had all been sent, is not started again.
	if _, err := os.Lstat(queue); err != nil || spool.Ended(queue) || spool.Undelivered(queue) {
		return false
	}
	made, err := os.ReadDir(filepath.Join(dir, artifactsName))
	return err == nil && len(made) == 0
}
