// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package escape tries to escape from the sandbox of programs of runs. A test runs its own binary as such a program. Main
// then tries every known way out and reports those that were open.
package escape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Argument is the argument with which a test binary that calls Main tries to escape.
const Argument = "try-to-escape"

// Target is what an escape would reach. Attempts whose field is empty are skipped.
type Target struct {
	// Secrets are files that must not be read, written, linked or removed; Later is one that appears after the program began.
	Secrets []string
	Later   string
	// Hidden are folders that must not be listed or written.
	Hidden []string
	// Processes are those of the worker and the server. Signals means that they must not be signalled either.
	Processes []int
	Signals   bool
	// Ports are host:port of the server, and Sockets are named and (with @) abstract sockets.
	Ports, Sockets []string
	// Owned are copies of a program that calls Main, which belong to another user and have the set-user-ID bit.
	Owned []string
	// Work is the program's own folder. If it is empty, it is where the program runs, and attempts on the run's folder
	// above it and on the worker are added.
	Work string
}

// attempt is one way out. It returns nil if it was open.
type attempt struct {
	name string
	try  func() error
}

// Main runs the attempts if the program was asked to, prints what was open and reports true.
func Main(out io.Writer) bool {
	if helps(out) {
		return true
	}
	if len(os.Args) != 3 || os.Args[1] != Argument {
		return false
	}
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	var t Target
	if err := json.Unmarshal([]byte(os.Args[2]), &t); err != nil {
		say("OPEN: target: %v", err)
		return true
	}
	if t.Work == "" {
		if err := t.addRun(); err != nil {
			say("OPEN: run: %v", err)
			return true
		}
	}
	attempts := slices.Concat(t.files(), t.processes(), t.scheduling(), t.sockets(), t.shared(), t.privileges())
	for _, a := range attempts {
		switch err := a.try(); {
		case err == nil:
			say("OPEN: %s", a.name)
		case !denied(err):
			say("OPEN: %s: not denied: %v", a.name, err)
		default:
			say("denied: %s: %v", a.name, brief(err))
		}
	}
	say("tried %d ways", len(attempts))
	return true
}

// addRun adds what a run has beside its work: its records, its worker, and a file that the executor's server writes.
func (t *Target) addRun() (err error) {
	if t.Work, err = os.Getwd(); err != nil {
		return err
	}
	run := filepath.Dir(t.Work)
	t.Hidden = append(t.Hidden, run)
	for _, name := range []string{"run.json", "log", "begun"} {
		t.Secrets = append(t.Secrets, filepath.Join(run, name))
	}
	t.Processes = append(t.Processes, os.Getppid())
	return nil
}

// denied reports whether an error is a refusal and not another failure of the attempt.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EROFS) || errors.Is(err, errDenied)
}

// brief returns the error of the kernel in a chain of errors that repeat what was tried: code_exec keeps 64 KiB.
func brief(err error) error {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return errno
	}
	return err
}

var errDenied = errors.New("denied")

func each[T any](name string, all []T, try func(T) error) []attempt {
	var out []attempt
	for _, v := range all {
		out = append(out, attempt{fmt.Sprintf("%s %v", name, v), func() error { return try(v) }})
	}
	return out
}

// Open returns the lines of Main's output that are escapes, and whether it tried anything.
func Open(output string) (open []string, tried bool) {
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "OPEN:") {
			open = append(open, strings.TrimSpace(line))
		}
		tried = tried || strings.HasPrefix(line, "tried ")
	}
	return open, tried
}
