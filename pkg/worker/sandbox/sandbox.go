// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package sandbox starts programs that nobody trusts. A program gets a Policy: the folders that it may read and those
// that it may write. Everything else of the file system is out of its reach, so are the processes outside, sockets and
// the privileges of root, for it and for all that it starts.
//
// # How
//
// The starting process executes itself again (a Launch). The copy, which this file calls the shim, does nothing but
// put itself into the sandbox and then become the program:
//
//  1. It reads the Program from an inherited pipe. Its own environment is empty, so that nothing which a task may set
//     has a say in it.
//  2. It gives up the privileges of root and sets no_new_privs, so that they do not come back.
//  3. It enters a Landlock domain, which knows the folders of the policy, and nothing of what is hidden.
//  4. It installs a seccomp filter for what Landlock does not cover; see filterRules.
//  5. It proves that what is hidden cannot be opened, and executes the program.
//
// An error in any of these ends the shim before the program begins, and reaches Launch.Confirm. There is no half of a
// sandbox: a kernel that lacks one of the parts runs no program, unless the policy says Off.
//
// # What it does not do
//
// Landlock does not restrict what needs only the name of a file: a program can ask whether a file exists, its size and
// times, and, where it runs as the file's owner, change its mode and times.
package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Policy is what a program may reach. It comes from the operator and the executor; nothing that a task, an agent or a
// program writes is part of it.
type Policy struct {
	// Off starts programs without a sandbox. Only an operator can want that.
	Off bool `json:"off,omitempty"`
	// Read are files and folders that the program may read and execute. Those that do not exist are left out.
	Read []string `json:"read,omitempty"`
	// Write are files and folders that it may read, execute and change. They must exist.
	Write []string `json:"write,omitempty"`
	// Hide are files and folders that are out of reach although Read or Write has a folder above them. They need not
	// exist yet. What Write names below a hidden folder can be reached all the same.
	Hide []string `json:"hide,omitempty"`
	// Network lets the program make sockets of every kind. Without it there are only socket pairs.
	Network bool `json:"network,omitempty"`
	// Kernel is what may be used of the kernel; nil is all that Probe finds. Less is for tests.
	Kernel *Kernel `json:"kernel,omitempty"`
}

// Kernel is what the kernel offers to a sandbox.
type Kernel struct {
	// Landlock is the version of its interface; 0 is none.
	Landlock int `json:"landlock"`
	// Seccomp says that system calls can be filtered.
	Seccomp bool `json:"seccomp"`
}

// ErrUnavailable is in the chain of the error for a sandbox that cannot be set up.
var ErrUnavailable = errors.New("programs cannot be run in a sandbox here")

// Probe asks the kernel what it offers.
func Probe() Kernel {
	// A filter that cannot be read is refused as such only where there are filters.
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	return Kernel{Landlock: landlockVersion(), Seccomp: errors.Is(err, unix.EFAULT) && auditArch != 0}
}

// Check says why programs cannot be run with this kernel; nil where they can.
func (k Kernel) Check() error {
	switch {
	case k.Landlock < 1:
		return fmt.Errorf("%w: the kernel lacks Landlock (Linux 5.13 or later, with landlock among the LSMs of its command line)", ErrUnavailable)
	case !k.Seccomp && auditArch == 0:
		return fmt.Errorf("%w: system calls of %s are not known to it", ErrUnavailable, runtime.GOARCH)
	case !k.Seccomp:
		return fmt.Errorf("%w: the kernel lacks seccomp filters", ErrUnavailable)
	}
	return nil
}

// String describes the sandbox for logs and events.
func (k Kernel) String() string {
	s := fmt.Sprintf("Landlock %d and seccomp", k.Landlock)
	if k.Landlock < scopeVersion {
		s += "; this kernel cannot keep programs from sending signals (Linux 6.12 can)"
	}
	return s
}

// Check says why the policy cannot be enforced here; nil where it can, or where it is Off.
func (p Policy) Check() error {
	if p.Off {
		return nil
	}
	return p.kernel().Check()
}

// String describes for logs and events what programs are kept in.
func (p Policy) String() string {
	if p.Off {
		return "off"
	}
	return p.kernel().String()
}

func (p Policy) kernel() Kernel {
	if p.Kernel != nil {
		return *p.Kernel
	}
	return Probe()
}

// Seal keeps other processes of the same user out of the memory, the environment and the open files of this one, and
// its memory out of core files. Who is root and not in a sandbox is not kept out.
func Seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("seal the process: %w", err)
	}
	return nil
}
