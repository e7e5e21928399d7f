// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package sandbox starts untrusted programs. A Policy lists the folders that a program may read and those that it may
// write. The program, and everything that it starts, cannot access the rest of the file system, processes outside of
// the sandbox, sockets, and the privileges of root.
//
// # How
//
// The starting process prepares a Landlock ruleset and a seccomp filter, and executes itself again (a Launch). The
// copy, called the shim (package shim), only enters the sandbox and then becomes the program:
//
//  1. It reads what it is to do from an inherited pipe. Its own environment is empty, so that nothing that a task may
//     set affects it.
//  2. It gives up the privileges of root and sets no_new_privs, so that it cannot regain them.
//  3. It enters the Landlock domain of the ruleset, which grants the folders of the policy, without what is hidden.
//  4. It installs the seccomp filter for what Landlock does not cover; see filterRules.
//  5. It verifies that what is hidden cannot be opened, and executes the program.
//
// An error in any of these steps ends the shim before the program begins, and Launch.Confirm returns it. There is no
// partial sandbox: on a kernel that lacks one of the parts no program runs, unless the policy says Off.
//
// # What it does not do
//
//   - Landlock does not restrict what needs only the name of a file: a program can ask whether a file exists, and its size and
//     times. What changes a file's attributes is done, or refused, by the starting process; see attributes.
//   - The first process of a program can read the machine's list of connections (/proc/self/net) and its mounts (/proc/self/mountinfo).
//   - Before Linux 6.12 (Landlock 6) it can send signals to processes of its user.
//
// Two things are missing inside the sandbox: only the first process of a program has its own entry in /proc, and on a machine /tmp
// and /dev/shm do not exist.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
)

// Policy is what a program may reach. It comes from the operator and the executor, never from a task, an agent or a
// program.
type Policy struct {
	// Off starts programs without a sandbox. Only an operator may set it.
	Off bool `json:"off,omitempty"`
	// Read are files and folders that the program may read and execute. Those that do not exist are left out.
	Read []string `json:"read,omitempty"`
	// Write are files and folders that it may read, execute and change. They must exist.
	Write []string `json:"write,omitempty"`
	// Hide are files and folders that cannot be reached although Read or Write has a folder above them. They need
	// not exist yet. Paths in Write that are below a hidden folder can still be reached.
	Hide []string `json:"hide,omitempty"`
	// Network lets the program create sockets of every kind. Without it only socket pairs are allowed.
	Network bool `json:"network,omitempty"`
	// ProxyPort is a TCP port to which a program without Network may connect nevertheless, that of a proxy on this machine; 0
	// for none. The rule has no address, so the port must be one that no other service has, as that of a listener chosen by the
	// kernel is. CheckProxy says whether this can be enforced.
	ProxyPort uint16 `json:"proxyPort,omitempty"`
	// DoorPort is another such port, that of the listener with which the worker gives a coding agent its models; 0 for none.
	DoorPort uint16 `json:"doorPort,omitempty"`
	// Service is a port of this machine's loopback on which the program may serve, and to which it may connect; nil for none.
	Service *Service `json:"-"`
	// Groups is where each program gets a control group, which bounds its processes.
	Groups cgroup.Place `json:"groups,omitzero"`
	// Kernel says which features of the kernel may be used; nil means all that Probe finds. Tests set fewer.
	Kernel *Kernel `json:"kernel,omitempty"`
	// resolved are the grants, if Resolved was called.
	resolved []grant
}

// Kernel is what the kernel offers to a sandbox.
type Kernel struct {
	// Landlock is the version of the Landlock ABI; 0 means that it is missing.
	Landlock int `json:"landlock"`
	// Seccomp says whether system calls can be filtered.
	Seccomp bool `json:"seccomp"`
	// UserNamespaces says whether users may make namespaces. The sandbox does not need them: a program that makes one
	// remains in its Landlock domain.
	UserNamespaces bool `json:"userNamespaces,omitempty"`
}

// ErrUnavailable is in the chain of the error for a sandbox that cannot be set up.
var ErrUnavailable = errors.New("programs cannot be run in a sandbox here")

// Probe asks the kernel what it offers.
func Probe() Kernel {
	// A kernel with filters refuses an unreadable filter with EFAULT. A kernel without them returns another error.
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0, 0, 0)
	return Kernel{Landlock: landlockVersion(), Seccomp: errors.Is(err, unix.EFAULT) && auditArch != 0, UserNamespaces: userNamespaces()}
}

// userNamespaces reports whether the kernel's parameters let users make namespaces.
func userNamespaces() bool {
	most, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	if err != nil || strings.TrimSpace(string(most)) == "0" {
		return false
	}
	switched, err := os.ReadFile("/proc/sys/kernel/unprivileged_userns_clone") // Debian has it
	return err != nil || strings.TrimSpace(string(switched)) != "0"
}

// Check returns an error that says why this kernel cannot run programs in a sandbox; nil if it can.
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

// CheckProxy returns an error that says why this kernel cannot keep programs from connecting to more than a proxy; nil if it
// can.
func (k Kernel) CheckProxy() error {
	if err := k.Check(); err != nil || k.Landlock >= networkVersion {
		return err
	}
	return fmt.Errorf("%w with the network: the kernel cannot limit what they connect to (Landlock %d is needed, Linux 6.7 has it)", ErrUnavailable, networkVersion)
}

// Check returns an error that says why the policy cannot be enforced here; nil if it can, or if it is Off.
func (p Policy) Check() error {
	switch {
	case p.Off:
		return nil
	case len(p.ports()) > 0:
		return p.CheckProxy()
	}
	return p.kernel().Check()
}

// ports returns the TCP ports to which the program may connect although it has no network.
func (p Policy) ports() (list []uint16) {
	for _, port := range []uint16{p.ProxyPort, p.DoorPort} {
		if port != 0 && !p.Network {
			list = append(list, port)
		}
	}
	if s := p.served(); s != nil {
		list = append(list, s.port)
	}
	return list
}

// served returns the port on which the program may serve although it has no network; nil for none.
func (p Policy) served() *Service {
	if p.Network {
		return nil
	}
	return p.Service
}

// CheckProxy returns an error that says why programs cannot be given a proxy here; nil if they can, or if the policy is Off.
func (p Policy) CheckProxy() error {
	if p.Off {
		return nil
	}
	return p.kernel().CheckProxy()
}

// String describes the policy's sandbox for logs and events.
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

// Seal keeps other processes of the same user from accessing the memory, the environment and the open files of this
// process, and keeps its memory out of core files. It does not stop root outside of a sandbox. Servers, controllers and
// workers call it.
func Seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("seal the process: %w", err)
	}
	return nil
}
