// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/worker/sandbox/shim"
)

// Program is a program to start under a policy.
type Program struct {
	// Path is the file of the program.
	Path string
	// Args are its arguments, the first being its name. Env is its whole environment; if a variable occurs twice, the
	// later value counts.
	Args, Env []string
	Policy    Policy
	Limits    []Limit
	// Group, if any, is the open file of a control group's limit of processes. Processes is written into it just before the
	// program begins, because until then the threads of the shim count as well. The caller closes it after Start.
	Group     *os.File
	Processes uint64
}

// Limit is a resource limit of a process (see setrlimit(2)), used as both the soft and the hard limit.
type Limit = shim.Limit

// Launch is one start of a program. The caller may set the folder, the outputs and the attributes of its command,
// but not the environment and the extra files, which the launch uses itself.
type Launch struct {
	*exec.Cmd
	order            shim.Order
	give, report     *os.File
	taken, reporting *os.File
	// ruleset is the Landlock ruleset, nil without a sandbox.
	ruleset *os.File
}

// Prepare makes a launch. The caller must call Start and then Confirm, or else Close.
func Prepare(p Program) (*Launch, error) {
	if err := p.Policy.Check(); err != nil {
		return nil, err
	}
	args := shim.Args()
	l := &Launch{
		Cmd:   exec.Command("/proc/self/exe", args[1:]...), //nolint:noctx // the caller ends it
		order: shim.Order{Path: p.Path, Args: p.Args, Env: lastValues(p.Env), Limits: p.Limits},
	}
	l.Args, l.Env = args, []string{}
	if p.Group != nil {
		l.order.Processes = strconv.FormatUint(p.Processes, 10)
	}
	if err := l.open(p); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// open makes the files that the shim inherits.
func (l *Launch) open(program Program) (err error) {
	if l.taken, l.give, err = os.Pipe(); err != nil {
		return err
	}
	if l.report, l.reporting, err = os.Pipe(); err != nil {
		return err
	}
	l.ExtraFiles = []*os.File{l.taken, l.reporting, program.Group, nil} // as package shim numbers them
	p := program.Policy
	if p.Off {
		return nil
	}
	k := p.kernel()
	if l.ruleset, err = newRuleset(p, k); err != nil {
		return err
	}
	l.ExtraFiles[len(l.ExtraFiles)-1] = l.ruleset
	l.order.Confined, l.order.SelfRights = true, readRights&allRights(k.Landlock)
	l.order.Filter, l.order.NoSockets = assemble(filterRules(p, k)), !p.Network
	// The kernel would hand the memory of a program that crashes to the machine's helper for core files, which runs as root.
	l.order.Limits = append(slices.Clip(program.Limits), Limit{Resource: unix.RLIMIT_CORE})
	l.order.Closed = append([]string{"/proc/1"}, p.Hide...)
	return nil
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
	for _, f := range []*os.File{l.give, l.report, l.taken, l.reporting, l.ruleset} {
		_ = f.Close() // closing again does no harm, and nor does closing nil
	}
}

// Confirm is called after Start. It sends the program to the shim, and returns when the program has begun. If the
// sandbox could not be set up, ErrUnavailable is in the chain of the error. If the execution failed, the error is
// that of the system. After an error the process ends by itself.
func (l *Launch) Confirm() error {
	defer l.Close()
	_, _ = l.taken.Close(), l.reporting.Close()
	// Writing fails if the shim is gone. Its report, or the lack of one, is then the error.
	_, _ = l.give.Write(l.order.Encode())
	_ = l.give.Close()
	report, err := io.ReadAll(l.report)
	switch {
	case err != nil:
		return err
	case len(report) == 0:
		return fmt.Errorf("%w: the program ended while its sandbox was set up", ErrUnavailable)
	case report[0] != shim.Begun:
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
