// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spool keeps, in a folder of a run, what the run's worker has to bring
// to the server: its events and its log as they come, and how the work ended with
// its result. What is in it was cleaned of secrets as it is sent. It lets a run's
// work outlive a server that is away, and the worker itself.
//
// A spool is written by one worker at a time. An executor reads it when that
// worker is gone, and starts another one for what is left.
package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/platform-ai/platform/pkg/runspec"
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
	// maxFile bounds what is read of a file of records, in bytes: what a worker
	// queues, twice, and some.
	maxFile = 128 << 20
	// maxEnd bounds the end, in bytes. A result of 10 MB may become six times as
	// long as JSON.
	maxEnd = 64 << 20
)

// ErrInUse means that another worker writes to the spool.
var ErrInUse = errors.New("spool: in use by another worker")

// End is how the work ended. Once it is kept, the work need not be done again.
type End struct {
	// Result is the result's text, empty for none.
	Result string `json:"result,omitempty"`
	// Termination is how the worker ends when all is delivered.
	Termination runspec.Termination `json:"termination"`
	// Content is that of the worker's last event.
	Content map[string]any `json:"content,omitempty"`
}

// Spool is an open spool.
type Spool struct {
	dir  string
	lock *os.File
	// Events and Log are the streams, in the order in which they are sent.
	Events, Log *File
	// PendingEvents and PendingLog are what an earlier worker left.
	PendingEvents, PendingLog []Record
}

// Open opens the spool of a folder, which is made where it is not there.
func Open(dir string) (s *Spool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	s = &Spool{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return s, fmt.Errorf("spool: %w", err)
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

// Keep writes down how the work ended. When it returns, that survives the
// machine, with what was appended before and is not acknowledged.
func (s *Spool) Keep(e End) error {
	for _, f := range []*File{s.Events, s.Log} {
		if !f.Pending() {
			continue
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	path := filepath.Join(s.dir, endName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = syncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("spool: %w", errors.Join(err, ignoreMissing(os.Remove(path+".new"))))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Delivered notes that the server has everything. Should the machine forget it,
// the same is delivered once more, which changes nothing.
func (s *Spool) Delivered() error {
	if err := os.WriteFile(filepath.Join(s.dir, deliveredName), nil, 0o600); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// Ended tells whether the work of a spool is over, be it delivered or not.
func Ended(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, endName))
	return err == nil && info.Mode().IsRegular()
}

// ReadEnd reads how the work ended; nil when that was not written down.
func ReadEnd(dir string) (*End, error) {
	raw, err := read(filepath.Join(dir, endName), maxEnd)
	if raw == nil || err != nil {
		return nil, err
	}
	e := &End{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("spool: end of the work: %w", err)
	}
	return e, nil
}

// Undelivered tells whether the spool holds what the server may lack. A folder
// that holds none, and one that cannot be read, has nothing.
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

// read reads a regular file; nil when there is none.
func read(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("spool: %s is not a file of at most %d bytes", filepath.Base(path), limit)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return raw, nil
}
