// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Program is a program to be started under a policy.
type Program struct {
	// Path is the file of the program.
	Path string `json:"path"`
	// Args are its arguments, the first being its name, and Env is its whole environment: of two values of a variable the
	// later one counts.
	Args   []string `json:"args"`
	Env    []string `json:"env"`
	Policy Policy   `json:"policy"`
	Limits []Limit  `json:"limits,omitempty"`
}

// Limit is a limit of a process, as setrlimit has it: soft and hard alike.
type Limit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// set lowers the limit of this process. A hard limit that is lower already stays.
func (l Limit) set() error {
	var old unix.Rlimit
	if err := unix.Getrlimit(l.Resource, &old); err != nil {
		return fmt.Errorf("read limit: %w", err)
	}
	value := min(l.Value, old.Max)
	if err := unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	return nil
}

// Launch is a start of a program. Its command may be given a folder, outputs and attributes; its environment and its
// extra files are its own.
type Launch struct {
	*exec.Cmd
	program          Program
	give, report     *os.File
	taken, reporting *os.File
}

// Prepare makes a launch; Start is to be called on it and then Confirm, or else Close.
func Prepare(p Program) (*Launch, error) {
	if err := p.Policy.Check(); err != nil {
		return nil, err
	}
	p.Env = lastValues(p.Env)
	l := &Launch{program: p, Cmd: exec.Command("/proc/self/exe", argument)} //nolint:noctx // the caller ends it
	l.Args[0] = p.Args[0]
	l.Env = []string{}
	var err error
	if l.taken, l.give, err = os.Pipe(); err != nil {
		return nil, err
	}
	if l.report, l.reporting, err = os.Pipe(); err != nil {
		l.Close()
		return nil, err
	}
	l.ExtraFiles = []*os.File{l.taken, l.reporting}
	return l, nil
}

// lastValues is an environment without the values that are set again later: programs differ in which of two they take.
func lastValues(env []string) []string {
	last := map[string]int{}
	for i, v := range env {
		name, _, _ := strings.Cut(v, "=")
		last[name] = i
	}
	var out []string
	for i, v := range env {
		if name, _, _ := strings.Cut(v, "="); last[name] == i {
			out = append(out, v)
		}
	}
	return out
}

// Close lets go of what the launch holds. It does not end the program.
func (l *Launch) Close() {
	for _, f := range []*os.File{l.give, l.report, l.taken, l.reporting} {
		_ = f.Close() // those that are closed already do not mind
	}
}

// Confirm is called after Start: it says what to run, and returns when the program has begun. ErrUnavailable is in the
// chain of the error where the sandbox could not be set up; the error of an execution that failed is otherwise that of
// the system. After an error the process ends by itself.
func (l *Launch) Confirm() error {
	defer l.Close()
	_, _ = l.taken.Close(), l.reporting.Close()
	program, err := json.Marshal(l.program)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	// A shim that is gone takes nothing; its report says why, or that there is none.
	_, _ = l.give.Write(program)
	_ = l.give.Close()
	report, err := io.ReadAll(l.report)
	switch {
	case err != nil:
		return err
	case len(report) == 0:
		return fmt.Errorf("%w: it ended while it was being set up", ErrUnavailable)
	case report[0] != begun:
		return &setupError{string(report)}
	case len(report) > 1:
		return errors.New(string(report[1:]))
	}
	return nil
}

// setupError is what a shim said before it ended.
type setupError struct{ message string }

func (e *setupError) Error() string { return e.message }

func (e *setupError) Is(target error) bool { return target == ErrUnavailable }
