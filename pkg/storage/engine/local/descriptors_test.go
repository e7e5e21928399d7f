// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// starved is a store whose next log or table is refused for lack of descriptors, and which is written until it waits for one.
type starved struct {
	*local.Engine
	disk    *localtest.Disk
	ledger  *ledger
	pauses  chan time.Duration
	waits   atomic.Bool   // there was a pause
	enough  chan struct{} // closed when pauses are not read any more
	written chan error    // gets the end of the writes
	said    []string
}

// starve opens a store and returns when it has paused three times for a file with that suffix.
func starve(t *testing.T, suffix string) *starved {
	t.Helper()
	s := &starved{
		disk: localtest.NewDisk(), ledger: newLedger(),
		pauses: make(chan time.Duration), enough: make(chan struct{}), written: make(chan error, 1),
	}
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { s.said = append(s.said, args) }, funcr.Options{}))
	var err error
	s.Engine, err = local.Open(ctx, local.Options{
		Dir: localtest.Dir, FS: s.disk.FS(), Mark: markFile, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
		Waiting: func(_ error, pause time.Duration) {
			select {
			case s.pauses <- pause:
			case <-s.enough:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.disk.Fail(func(o localtest.Op) error {
		if o.Kind == localtest.Other && strings.HasSuffix(o.Path, suffix) {
			return syscall.EMFILE
		}
		return nil
	})
	go func() { s.written <- s.write() }()
	for want := 50 * time.Millisecond; want < 400*time.Millisecond; want *= 2 {
		if pause := <-s.pauses; pause != want {
			t.Errorf("paused for %v, want %v", pause, want)
		}
		s.waits.Store(true)
	}
	close(s.enough)
	return s
}

// write writes until the store waits.
func (s *starved) write() error {
	for i := 0; !s.waits.Load(); i++ {
		if err := s.ledger.write(s.Engine, fmt.Sprint(i)); err != nil {
			return err
		}
	}
	return nil
}

// An open store that can make no more files stays healthy, is not ready, and says so once. What is written waits, and is there
// when files can be made again.
func TestOpenStoreWaitsForDescriptors(t *testing.T) {
	for _, suffix := range []string{".log", ".sst"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			s := starve(t, suffix)
			if err := s.Healthy(); err != nil {
				t.Errorf("health: %v", err)
			}
			if err := s.Ready(); !errors.Is(err, syscall.EMFILE) {
				t.Errorf("ready: %v", err)
			}
			s.disk.Fail(nil)
			if err := <-s.written; err != nil {
				t.Error(err)
			}
			if _, acked := s.ledger.copies(); count(t, s.Engine) != len(acked) {
				t.Errorf("%d of %d writes", count(t, s.Engine), len(acked))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if n := strings.Count(strings.Join(s.said, "\n"), "can open no more files"); n != 1 {
				t.Errorf("%d lines of %q", n, s.said)
			}
		})
	}
}

// An open store on a volume that can hold no more files waits likewise until it can make the log that it needs.
func TestOpenStoreWaitsForInodes(t *testing.T) {
	disk, l, pauses := localtest.NewDisk(), newLedger(), make(chan struct{})
	e, err := local.Open(t.Context(), local.Options{
		Dir: localtest.Dir, FS: disk.FS(), Mark: markFile, MemTableBytes: 256 << 10, OnFatal: func(err error) { t.Errorf("fatal: %v", err) },
		Waiting: func(error, time.Duration) { pauses <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	disk.Fail(func(o localtest.Op) error {
		if o.Kind == localtest.Other { // what makes a file
			return syscall.ENOSPC
		}
		return nil
	})
	stop, written := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				written <- nil
				return
			default:
			}
			if err := l.write(e, fmt.Sprint(i)); err != nil {
				written <- err
				return
			}
		}
	}()
	<-pauses
	if err := e.Ready(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("ready: %v", err)
	}
	close(stop)
	disk.Fail(nil)
	for done := false; !done; {
		select {
		case <-pauses:
		case err := <-written:
			done = true
			if err != nil {
				t.Error(err)
			}
		}
	}
	if _, acked := l.copies(); count(t, e) != len(acked) {
		t.Errorf("%d of %d writes", count(t, e), len(acked))
	}
	if err := errors.Join(e.Ready(), e.Healthy(), e.Close()); err != nil {
		t.Error(err)
	}
}

// Closing a store that waits for a descriptor fails instead of waiting, too. What was acknowledged is there afterwards.
func TestCloseOfAStoreWithoutDescriptors(t *testing.T) {
	s := starve(t, ".log")
	if err := s.Close(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("close: %v", err)
	}
	_, acked := s.ledger.copies()
	crashed := s.disk.Crash(0, 0)
	s.disk.Fail(nil) // the process that would end here goes on, and its writes end
	if err := <-s.written; err != nil && !errors.Is(err, engine.ErrClosed) {
		t.Error(err)
	}
	unlocked(t, s.disk)
	holds(t, crashed, acked, len(acked))
}
