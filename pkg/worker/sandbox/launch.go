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

// Program is a program to start under a policy.
type Program struct {
	// Path is the file of the program.
	Path string `json:"path"`
	// Args are its arguments, the first being its name. Env is its whole environment; if a variable occurs twice, the
	// later value counts.
	Args   []string `json:"args"`
	Env    []string `json:"env"`
	Policy Policy   `json:"policy"`
	Limits []Limit  `json:"limits,omitempty"`
}

// Limit is a resource limit of a process (see setrlimit(2)), used as both the soft and the hard limit.
type Limit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// set lowers the limit of this process. A hard limit that is already lower stays.
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

// Launch is one start of a program. The caller may set the folder, the outputs and the attributes of its command,
// but not the environment and the extra files, which the launch uses itself.
type Launch struct {
	*exec.Cmd
	program          Program
	give, report     *os.File
	taken, reporting *os.File
}

// Prepare makes a launch. The caller must call Start and then Confirm, or else Close.
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

// lastValues returns the environment without values that are set again later, because programs differ in which of
// two values they use.
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

// Close releases the files that the launch holds. It does not end the program.
func (l *Launch) Close() {
	for _, f := range []*os.File{l.give, l.report, l.taken, l.reporting} {
		_ = f.Close() // closing again does no harm
	}
}

// Confirm is called after Start. It sends the program to the shim, and returns when the program has begun. If the
// sandbox could not be set up, ErrUnavailable is in the chain of the error. If the execution failed, the error is
// that of the system. After an error the process ends by itself.
func (l *Launch) Confirm() error {
	defer l.Close()
	_, _ = l.taken.Close(), l.reporting.Close()
	program, err := json.Marshal(l.program)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	// Writing fails if the shim is gone. Its report, or the lack of one, is then the error.
	_, _ = l.give.Write(program)
	_ = l.give.Close()
	report, err := io.ReadAll(l.report)
	switch {
	case err != nil:
		return err
	case len(report) == 0:
		return fmt.Errorf("%w: the program ended while its sandbox was set up", ErrUnavailable)
	case report[0] != begun:
		return &setupError{string(report)}
	case len(report) > 1:
		return errors.New(string(report[1:]))
	}
	return nil
}

// setupError is the error that a shim reported before it ended.
type setupError struct{ message string }

func (e *setupError) Error() string { return e.message }

func (e *setupError) Is(target error) bool { return target == ErrUnavailable }
