// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// rule refuses a system call with an error if all of its conditions hold.
type rule struct {
	call  uint32
	when  []condition
	errno unix.Errno
	// ask makes the kernel ask the listener of the filter instead. A filter that has none refuses the call with ENOSYS.
	ask bool
}

// condition compares the lower half of an argument, masked, with a value.
type condition struct {
	arg   int
	mask  uint32
	value uint32
	// differs makes the condition hold if they differ.
	differs bool
}

// Offsets in struct seccomp_data, which is what a filter sees of a call.
const (
	callOffset = 0
	archOffset = 4
	argsOffset = 16
	argSize    = 8
	// unknownCall is the first number that no system call had when these rules were written. What gets it later may do what they
	// refuse. The numbers of other ABIs of the same machine, such as x32, are larger.
	unknownCall = 472
)

// Instructions of a filter.
const (
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and       = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpFrom  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	give      = unix.BPF_RET | unix.BPF_K
)

func (r rule) verdict() syscall.SockFilter {
	if r.ask {
		return syscall.SockFilter{Code: give, K: unix.SECCOMP_RET_USER_NOTIF}
	}
	return refuseWith(r.errno)
}

func refuseWith(e unix.Errno) syscall.SockFilter {
	return syscall.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
}

// assemble makes a filter from rules. Programs of another architecture cannot make any system call.
func assemble(rules []rule) []syscall.SockFilter {
	f := []syscall.SockFilter{
		{Code: load, K: archOffset},
		{Code: jumpEqual, K: auditArch, Jt: 1},
		refuseWith(unix.ENOSYS),
		{Code: load, K: callOffset},
		{Code: jumpFrom, K: unknownCall, Jf: 1},
		refuseWith(unix.ENOSYS),
	}
	for _, r := range rules {
		var tests []syscall.SockFilter
		// A condition that does not hold jumps to after the refusal. The distance is the number of instructions from here
		// to there.
		for i, c := range r.when {
			after := uint8(3*(len(r.when)-i-1) + 1)
			test := syscall.SockFilter{Code: jumpEqual, K: c.value, Jf: after}
			if c.differs {
				test.Jt, test.Jf = after, 0
			}
			tests = append(tests, syscall.SockFilter{Code: load, K: uint32(argsOffset + argSize*c.arg)}, syscall.SockFilter{Code: and, K: c.mask}, test)
		}
		f = append(f, syscall.SockFilter{Code: load, K: callOffset}, syscall.SockFilter{Code: jumpEqual, K: r.call, Jf: uint8(len(tests) + 1)})
		f = append(append(f, tests...), r.verdict())
	}
	return append(f, syscall.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
}
