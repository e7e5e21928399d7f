// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package shim is the process that enters a sandbox and then becomes a program. Package sandbox starts it, by executing
// the present program again.
//
// Go initializes packages in the order of their imports and paths. This package imports almost nothing, so the shim is
// done before the many packages of a worker are initialized, which takes several times as long as the shim itself.
// For the same reason it decides nothing: package sandbox prepares the Landlock rules and the seccomp filter.
package shim

import (
	"runtime"
	"syscall"
	"unsafe"
)

// File descriptors of the shim in addition to the program's own.
const (
	orderFD = 3 + iota
	reportFD
	groupFD
	rulesetFD
)

// Begun in a report says that the sandbox is set up. What follows is the error of executing the program, or nothing.
// A report that begins otherwise is the error of the setup. The listener of the seccomp filter, if there is one, is sent with it.
const Begun = 0

// exitFailed is the exit code of a shim that did not become the program.
const exitFailed = 126

// Args returns the command line that makes a program that links this package act as the shim.
func Args() []string { return []string{"sandbox", "sandboxed-program"} }

// commandLine is Args as /proc/self/cmdline shows them.
const commandLine = "sandbox\x00sandboxed-program\x00"

// The shim starts in init, not in main. So no program or test that uses package sandbox has to call it.
func init() { //nolint:gochecknoinits // see above
	var line [len(commandLine) + 1]byte
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return // a shim has /proc, from which it was executed
	}
	n, err := syscall.Read(fd, line[:])
	_ = syscall.Close(fd)
	if err == nil && n > 0 && string(line[:n]) == commandLine {
		become()
	}
}

// become turns this process into the program that it reads from the pipe, or ends it.
func become() {
	runtime.LockOSThread() // what follows concerns the thread that executes the program
	_, _ = syscall.Write(reportFD, []byte(enter()))
	syscall.Exit(exitFailed)
}

// enter enters the sandbox and executes the program. It returns only if there is an error, with its text.
func enter() string {
	// From here on the program inherits only its own three descriptors.
	if _, _, errno := syscall.RawSyscall(sysCloseRange, orderFD, 1<<32-1, closeRangeCloexec); errno != 0 {
		if err := closeOnExec(); err != nil {
			return "sandbox: descriptors: " + err.Error()
		}
	}
	o, ok := receive()
	if !ok {
		return "sandbox: the program was not received"
	}
	listener := noListener
	if o.Confined {
		var err string
		if listener, err = o.confine(); err != "" {
			return "programs cannot be run in a sandbox here: " + err
		}
	}
	for _, l := range o.Limits {
		if err := l.set(); err != nil {
			return "sandbox: limit: " + err.Error()
		}
	}
	var rights []byte
	if listener != noListener {
		rights = syscall.UnixRights(listener)
	}
	if err := syscall.Sendmsg(reportFD, []byte{Begun}, rights, nil, 0); err != nil {
		return "sandbox: report: " + err.Error()
	}
	if err := o.limitGroup(); err != nil {
		return "sandbox: limit of processes: " + err.Error()
	}
	return syscall.Exec(o.Path, o.Args, o.Env).Error()
}

// limitGroup sets the limit of processes of the control group. It is raw and comes last: a shim with more threads than the
// limit could start no other, which ends a program of Go.
func (o Order) limitGroup() error {
	if o.Processes == "" {
		return nil
	}
	text := []byte(o.Processes)
	_, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, groupFD, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text))) //nolint:gosec // bytes for the kernel
	if errno != 0 {
		return errno
	}
	return nil
}

// receive reads the order from its pipe.
func receive() (Order, bool) {
	var all []byte
	page := make([]byte, 16<<10)
	for {
		n, err := syscall.Read(orderFD, page)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return Order{}, false
		case n == 0:
			return Decode(all)
		default:
			all = append(all, page[:n]...)
		}
	}
}

// closeOnExec does what close_range does, for kernels before 5.11 and container runtimes whose filters refuse it.
func closeOnExec() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	for fd := orderFD; fd < int(min(limit.Max, 1<<31-1)); fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}

// confine puts the process into the sandbox. It returns the listener of the filter, and the text of the error.
func (o Order) confine() (listener int, problem string) {
	if err := dropPrivileges(); err != nil {
		return noListener, "privileges: " + err.Error()
	}
	if err := o.enterDomain(); err != nil {
		return noListener, "Landlock: " + err.Error()
	}
	listener, err := o.installFilter()
	if err != nil {
		return noListener, "seccomp: " + err.Error()
	}
	return listener, o.prove()
}

// dropPrivileges permanently gives up the capabilities of root.
func dropPrivileges() error {
	for c := range uintptr(64) {
		_, errno := prctl(prCapbsetDrop, c)
		if errno == syscall.EPERM || errno == syscall.EINVAL { // nothing to give up, or no further capabilities
			break
		}
		if errno != 0 {
			return errno
		}
	}
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion3}
	var none [2]struct{ effective, permitted, inheritable uint32 }
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0) //nolint:gosec // structs for the kernel
	if errno != 0 {
		return errno
	}
	if _, errno := prctl(prSetNoNewPrivs, 1); errno != 0 {
		return errno
	}
	return nil
}

func prctl(option, value uintptr) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, value, 0, 0, 0, 0)
	return int(n), errno
}

// enterDomain restricts the thread to the rules that were prepared, and to its own entry in /proc, whose name was not
// known before.
func (o Order) enterDomain() error {
	self, err := syscall.Open("/proc/self", oPath|syscall.O_CLOEXEC, 0)
	if err == nil {
		rule := pathBeneath{rights: o.SelfRights, fd: int32(self)}
		_, _, errno := syscall.RawSyscall6(sysLandlockAddRule, rulesetFD, rulePathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // a struct for the kernel
		_ = syscall.Close(self)
		if errno != 0 {
			return errno
		}
	}
	if _, _, errno := syscall.RawSyscall(sysLandlockRestrictSelf, rulesetFD, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// noListener is the descriptor of a filter that has none.
const noListener = -1

// installFilter filters the calls of the thread from now on. It returns the descriptor of the filter's listener. A process can have
// one, so there is none here if this process is supervised in the same way; the calls that the listener would be asked about fail then.
func (o Order) installFilter() (int, error) {
	if len(o.Filter) == 0 {
		return noListener, syscall.EINVAL
	}
	program := syscall.SockFprog{Len: uint16(len(o.Filter)), Filter: &o.Filter[0]}
	var listener uintptr
	var errno syscall.Errno
	// The first makes a call that was asked about go on in spite of signals, which needs Linux 5.19.
	for _, flags := range [...]uintptr{seccompNewListener | seccompKillable, seccompNewListener, 0} {
		listener, _, errno = syscall.RawSyscall(uintptr(o.Seccomp), seccompFilter, flags, uintptr(unsafe.Pointer(&program))) //nolint:gosec // a struct for the kernel
		if flags == 0 && errno == 0 {
			listener = ^uintptr(0)
		}
		if errno != syscall.EINVAL && errno != syscall.EBUSY {
			break
		}
	}
	runtime.KeepAlive(o.Filter)
	if errno != 0 {
		return noListener, errno
	}
	return int(listener), nil
}

// prove verifies that what must be impossible now fails. It returns the text of the error.
func (o Order) prove() string {
	if v, errno := prctl(prGetNoNewPrivs, 0); errno != 0 || v != 1 {
		return "no_new_privs does not hold"
	}
	if o.NoSockets {
		if fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0); err == nil {
			_ = syscall.Close(fd)
			return "a socket can be made"
		}
	}
	for _, path := range o.Closed {
		if fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0); err == nil {
			_ = syscall.Close(fd)
			return path + " can still be opened"
		}
	}
	return ""
}
