// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// watcher looks at a tree now and then. It ends when the pipe is closed, or with the first error.
type watcher struct {
	pipe *os.File
	err  chan error
}

// watch begins to look. After each look it waits for the returned number of milliseconds.
func watch(look func() (pause int, err error)) (*watcher, error) {
	r, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch a program: %w", err)
	}
	w := &watcher{pipe, make(chan error, 1)}
	go func() {
		defer close(w.err)
		defer func() { _ = r.Close() }()
		// A timer of Go would need other threads, which the processes of the tree keep from running.
		wait := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		for wait[0].Revents == 0 {
			pause, err := look()
			if err != nil {
				w.err <- err
				return
			}
			_, _ = unix.Poll(wait, pause)
		}
	}()
	return w, nil
}

// end stops the looking. It returns the error that a look ended with.
func (w *watcher) end() error {
	if w == nil {
		return nil
	}
	_ = w.pipe.Close()
	return <-w.err
}
