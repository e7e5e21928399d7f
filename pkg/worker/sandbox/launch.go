// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"errors"
	"fmt"
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
	// attributes answers what the program's filter asks.
	attributes attributes
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("report of the sandbox: %w", err)
	}
	l.report, l.reporting = os.NewFile(uintptr(pair[0]), "report"), os.NewFile(uintptr(pair[1]), "reporting")
	l.ExtraFiles = []*os.File{l.taken, l.reporting, program.Group, nil} // as package shim numbers them
	p := program.Policy
	if p.Off {
		return nil
	}
	k := p.kernel()
	grants, err := p.grants()
	if err != nil {
		return err
	}
	l.attributes = newAttributes(grants, p.served())
	if l.ruleset, err = newRuleset(p, k, grants); err != nil {
		return err
	}
	l.ExtraFiles[len(l.ExtraFiles)-1] = l.ruleset
	l.order.Confined, l.order.SelfRights = true, readRights&allRights(k.Landlock)
	l.order.Filter, l.order.Seccomp, l.order.NoSockets = assemble(filterRules(p, k)), unix.SYS_SECCOMP, !p.Network
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
	report, listener, err := receive(int(l.report.Fd()))
	if listener != nil {
		go l.attributes.serve(listener)
	}
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

// receive reads a report to its end, and the listener of a filter that was sent with it; nil if there was none.
func receive(socket int) (report []byte, listener *os.File, err error) {
	part, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, sent, _, _, err := unix.Recvmsg(socket, part, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return report, listener, fmt.Errorf("report of the sandbox: %w", err)
		case sent > 0:
			listener, err = listenerIn(rights[:sent])
			if err != nil {
				return report, nil, err
			}
		case n == 0:
			return report, listener, nil
		}
		report = append(report, part[:n]...)
	}
}

// listenerIn returns the descriptor that came with a message.
func listenerIn(rights []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, fmt.Errorf("report of the sandbox: %w", err)
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil && len(fds) == 1 {
			if err := unix.SetNonblock(fds[0], true); err != nil { // so that waiting for it occupies no thread
				return nil, errors.Join(err, unix.Close(fds[0]))
			}
			return os.NewFile(uintptr(fds[0]), "seccomp"), nil
		}
	}
	return nil, errors.New("report of the sandbox: not one descriptor")
}

// setupError is the error that a shim reported before it ended.
type setupError struct{ message string }

func (e *setupError) Error() string { return e.message }

func (e *setupError) Is(target error) bool { return target == ErrUnavailable }
