// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// argument, as the only argument, makes a program that links this package act as the shim.
const argument = "sandboxed-program"

// File descriptors of the shim in addition to the program's own.
const (
	programFD = 3
	reportFD  = 4
)

// begun in a report says that the sandbox is set up. What follows is the error of executing the program, or
// nothing.
const begun = 0

// exitShim is the exit code of a shim that did not become the program.
const exitShim = 126

// The shim starts in init, not in main. So no program or test that uses this package has to call it, and it runs
// before the other packages of a large program are initialized.
func init() { //nolint:gochecknoinits // see above
	if len(os.Args) == 2 && os.Args[1] == argument {
		become()
	}
}

// become turns this process into the program that it reads from the pipe, or ends it.
func become() {
	runtime.LockOSThread() // what follows concerns the thread that executes the program
	report := os.NewFile(reportFD, "report")
	err := enter(report)
	_, _ = io.WriteString(report, err.Error())
	os.Exit(exitShim) //nolint:forbidigo // there is no main above
}

// enter enters the sandbox and executes the program. It returns only if there is an error.
func enter(report io.Writer) error {
	// From here on the program inherits only its own three descriptors.
	if err := unix.CloseRange(programFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		if err := closeOnExec(); err != nil {
			return fmt.Errorf("sandbox: descriptors: %w", err)
		}
	}
	var p Program
	if err := json.NewDecoder(os.NewFile(programFD, "program")).Decode(&p); err != nil {
		return fmt.Errorf("sandbox: read the program: %w", err)
	}
	if err := p.Policy.enforce(); err != nil {
		return err
	}
	for _, l := range p.Limits {
		if err := l.set(); err != nil {
			return err
		}
	}
	if _, err := report.Write([]byte{begun}); err != nil {
		return fmt.Errorf("sandbox: report: %w", err)
	}
	return unix.Exec(p.Path, p.Args, p.Env)
}

// closeOnExec does what close_range does, for kernels before 5.11 and container runtimes whose filters refuse it.
func closeOnExec() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for fd := programFD; fd < int(min(limit.Max, math.MaxInt32)); fd++ {
		unix.CloseOnExec(fd)
	}
	return nil
}

// enforce puts the calling thread, which must be locked, under the policy.
func (p Policy) enforce() error {
	if p.Off {
		return nil
	}
	k := p.kernel()
	if err := k.Check(); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	if err := enterDomain(p, k); err != nil {
		return err
	}
	if err := installFilter(filterRules(p, k)); err != nil {
		return err
	}
	return p.prove()
}

// dropPrivileges permanently gives up the capabilities of root.
func dropPrivileges() error {
	for c := range uintptr(64) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) { // nothing to give up, or no further capabilities
			break
		}
		if err != nil {
			return fmt.Errorf("%w: privileges: %w", ErrUnavailable, err)
		}
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("%w: privileges: %w", ErrUnavailable, err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("%w: no_new_privs: %w", ErrUnavailable, err)
	}
	return nil
}

// prove verifies that what must be impossible now fails.
func (p Policy) prove() error {
	if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 1 {
		return fmt.Errorf("%w: no_new_privs does not hold", ErrUnavailable)
	}
	if !p.Network {
		if fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err == nil {
			_ = unix.Close(fd)
			return fmt.Errorf("%w: a socket can be made", ErrUnavailable)
		}
	}
	for _, path := range append([]string{"/proc/1"}, p.Hide...) {
		if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Close(fd)
			return fmt.Errorf("%w: %s can still be opened", ErrUnavailable, path)
		}
	}
	return nil
}
