// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package spool

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestFullDisk limits the size of files, as a full disk does: an append fails and leaves the
// file unchanged, and works when there is room again.
func TestFullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "f")
	f, _ := open(t, path)
	add(t, f, "one")
	var old unix.Rlimit
	if err := unix.Prlimit(os.Getpid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1000, Max: unix.RLIM_INFINITY}, &old); err != nil {
		t.Skip(err)
	}
	_, err := f.Append(bytes.Repeat([]byte("x"), 5000))
	_, serr := f.Append([]byte("small"))
	if rerr := unix.Prlimit(os.Getpid(), unix.RLIMIT_FSIZE, &old, nil); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, syscall.EFBIG) || serr != nil {
		t.Errorf("%v, %v", err, serr)
	}
	add(t, f, "two")
	if _, got := open(t, path); !cmp.Equal(got, []string{"one", "small", "two"}) {
		t.Errorf("%q", got)
	}
}
