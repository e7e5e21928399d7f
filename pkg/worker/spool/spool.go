// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spool keeps, in a folder of a run, what the run's worker has to send to the server:
// its events and its log as they come, and how the work ended, with its result. As in requests,
// secrets are removed before anything is stored. So the results of a run survive an unavailable
// server and the end of the worker.
//
// Events and log lines are written here before they are sent; if the disk has no room, they are sent all the same.
// What the server has accepted, or refused for good, is acknowledged by an offset in the file, and is not sent
// again. What survives depends on how far the work is:
//
//   - While it goes on, events and log survive the end of the worker. They are not synced, so a crash of the
//     machine may lose some.
//   - Once it is over, Keep syncs both streams and stores the End. From then on a kill, a crash of the machine
//     and an expired token lose nothing.
//
// A spool is written by one worker at a time. When that worker is gone, an executor reads the
// spool, and starts another worker, with a new token, to send what is left. Events have de-duplication keys, so
// sending them again changes nothing. Log lines have none: the log may repeat its last ones.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/platform-ai/platform/pkg/durable"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workspace"
)

// Names in the folder.
const (
	eventsName    = "events"
	logName       = "log"
	endName       = "end.json"
	deliveredName = "delivered"
	lockName      = "lock"
)

const (
	// maxFile bounds how much of a file of records is read, in bytes: more than twice what a
	// worker queues.
	maxFile = 128 << 20
	// maxEnd bounds the stored End, in bytes. As JSON, a result of 10 MB may become six times as
	// long.
	maxEnd = 64 << 20
)

// ErrInUse means that another worker writes to the spool.
var ErrInUse = errors.New("another worker uses the spool")

// End is how the work ended. Once it is stored, the work need not be done again.
type End struct {
	// Result is the text of the result; empty for none.
	Result string `json:"result,omitempty"`
	// Termination is how the worker ends when everything is delivered.
	Termination runspec.Termination `json:"termination"`
	// Content is the content of the worker's last event.
	Content map[string]any `json:"content,omitempty"`
	// Artifacts are the names under which files of the artifacts folder are uploaded, by path, where the paths themselves must not
	// leave the machine.
	Artifacts map[string]string `json:"artifacts,omitempty"`
	// Delta is set if the folder of the spool has what the run changed in its workspace (DeltaName), and the same as text (DiffName).
	Delta bool `json:"delta,omitempty"`
}

// Names of files in the folder of a spool.
const (
	DeltaName = "delta.tar.gz"
	DiffName  = workspace.DiffName
)

// Spool is an open spool.
type Spool struct {
	dir  string
	lock *os.File
	// Events and Log are the streams, in sending order.
	Events, Log *File
	// PendingEvents and PendingLog are the records that an earlier worker left.
	PendingEvents, PendingLog []Record
}

// Open opens the spool in a folder, and creates the folder if it does not exist.
func Open(dir string) (s *Spool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the spool of the run: %w", err)
	}
	s = &Spool{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return s, fmt.Errorf("the spool of the run: %w", err)
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return s, fmt.Errorf("%w: %w", ErrInUse, err)
	}
	if s.Events, s.PendingEvents, err = OpenFile(filepath.Join(dir, eventsName)); err != nil {
		return s, err
	}
	s.Log, s.PendingLog, err = OpenFile(filepath.Join(dir, logName))
	return s, err
}

// Close closes the files. It may be called on a spool that is not fully open.
func (s *Spool) Close() error {
	var err error
	for _, f := range []*File{s.Events, s.Log} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// Keep stores how the work ended. When it returns, that survives a crash of the machine, and so
// does everything that was appended before and is not acknowledged.
func (s *Spool) Keep(e End) error {
	if err := s.sync(); err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(s.dir, endName), raw); err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	return nil
}

// sync writes both streams to the disk, at the same time, because the disk then writes its own journal once for both.
func (s *Spool) sync() error {
	var wait sync.WaitGroup
	files := []*File{s.Events, s.Log}
	errs := make([]error, len(files))
	for i, f := range files {
		if f.Pending() {
			wait.Go(func() { errs[i] = f.Sync() })
		}
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Delivered records that the server has everything. If a crash of the machine loses the record,
// everything is delivered again, which changes nothing.
func (s *Spool) Delivered() error {
	if err := os.WriteFile(filepath.Join(s.dir, deliveredName), nil, 0o600); err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	return nil
}

// Stored reports whether the server has everything that the spool held, and what was uploaded with it.
func Stored(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, deliveredName))
	return err == nil && info.Mode().IsRegular()
}

// Ended reports whether the work of a spool is over, whether delivered or not.
func Ended(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, endName))
	return err == nil && info.Mode().IsRegular()
}

// ReadEnd reads how the work ended; nil if that was not stored.
func ReadEnd(dir string) (*End, error) {
	raw, err := read(filepath.Join(dir, endName), maxEnd)
	if raw == nil || err != nil {
		return nil, err
	}
	e := &End{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("the spool of the run: end of the work: %w", err)
	}
	return e, nil
}

// Undelivered reports whether the spool holds something that the server may lack. It reports
// false for a folder without a spool and for one that cannot be read.
func Undelivered(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, deliveredName)); err == nil {
		return false
	}
	if Ended(dir) {
		return true
	}
	for _, name := range []string{eventsName, logName} {
		raw, err := read(filepath.Join(dir, name), maxFile)
		if err != nil {
			continue
		}
		if c, ok := parse(raw); ok && len(c.pending) > 0 {
			return true
		}
	}
	return false
}

// read reads a regular file; nil if there is none.
func read(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the spool of the run: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("the spool of the run: %s is not a file of at most %d bytes", filepath.Base(path), limit)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("the spool of the run: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, fmt.Errorf("the spool of the run: %w", err)
	}
	return raw, nil
}
