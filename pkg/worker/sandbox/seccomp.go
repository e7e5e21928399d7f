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
}

// condition compares the lower half of an argument, masked, with a value.
type condition struct {
	arg   int
	mask  uint32
	value uint32
	// differs makes the condition hold if they differ.
	differs bool
}

const socketTypeMask = 0xf

// filterRules refuses calls that Landlock does not cover, or not in all its versions:
//
//   - Sockets. They reach the server's ports, abstract and named sockets of other programs (a container engine's
//     among them) and the network. A pair of connected sockets can reach nothing else and remains allowed.
//   - Keyrings, which belong to the operator's session.
//   - io_uring, whose operations filters do not see.
//   - Namespaces and mounts, programs and modules for the kernel, and its counters and page faults. A program needs
//     privileges for most of these, or a user namespace, in which it has them: much of the kernel can only be attacked
//     from there.
//   - Before version 3 of Landlock, truncating files without writing to them.
func filterRules(p Policy, k Kernel) []rule {
	rules := []rule{
		{call: unix.SYS_KEYCTL, errno: unix.EPERM},
		{call: unix.SYS_ADD_KEY, errno: unix.EPERM},
		{call: unix.SYS_REQUEST_KEY, errno: unix.EPERM},
		{call: unix.SYS_IO_URING_SETUP, errno: unix.ENOSYS},
		// A filter cannot read the flags of clone3, which are in memory. C libraries then use clone.
		{call: unix.SYS_CLONE3, errno: unix.ENOSYS},
	}
	for _, call := range [...]uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		rules = append(rules, rule{call: call, errno: unix.EPERM, when: []condition{{arg: 0, mask: unix.CLONE_NEWUSER, value: unix.CLONE_NEWUSER}}})
	}
	for _, call := range [...]uint32{
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD,
	} {
		rules = append(rules, rule{call: call, errno: unix.EPERM})
	}
	if !p.Network {
		rules = append(rules, socketRules(p.ProxyPort != 0)...)
	}
	if k.Landlock < truncateVersion {
		rules = append(rules, rule{call: unix.SYS_TRUNCATE, errno: unix.EACCES}, rule{call: unix.SYS_OPENAT2, errno: unix.ENOSYS})
		for call, flags := range openCalls() {
			rules = append(rules, rule{call: call, errno: unix.EACCES, when: []condition{
				{arg: flags, mask: unix.O_TRUNC | unix.O_ACCMODE, value: unix.O_TRUNC | unix.O_RDONLY},
			}})
		}
	}
	return rules
}

// whole compares a whole argument.
const whole = ^uint32(0)

// socketRules refuse sockets other than pairs of connected ones. A program with a proxy may have sockets of TCP as well, whose
// connections Landlock limits to the proxy's port. What Landlock does not see of TCP is refused: sockets of its relatives (MPTCP),
// data that is sent along with a connection that was not asked for (TCP fast open), and listening without a port of one's own.
func socketRules(proxy bool) []rule {
	const no = unix.EACCES
	rules := []rule{
		{call: unix.SYS_SOCKETPAIR, errno: no, when: []condition{{arg: 0, mask: whole, value: unix.AF_UNIX, differs: true}}},
		{call: unix.SYS_SOCKETPAIR, errno: no, when: []condition{ // sockets of other kinds could be connected elsewhere later
			{arg: 1, mask: socketTypeMask, value: unix.SOCK_STREAM, differs: true},
			{arg: 1, mask: socketTypeMask, value: unix.SOCK_SEQPACKET, differs: true},
		}},
	}
	if !proxy {
		return append(rules, rule{call: unix.SYS_SOCKET, errno: no})
	}
	rules = append(rules,
		rule{call: unix.SYS_SOCKET, errno: no, when: []condition{
			{arg: 0, mask: whole, value: unix.AF_INET, differs: true}, {arg: 0, mask: whole, value: unix.AF_INET6, differs: true},
		}},
		rule{call: unix.SYS_SOCKET, errno: no, when: []condition{{arg: 1, mask: socketTypeMask, value: unix.SOCK_STREAM, differs: true}}},
		rule{call: unix.SYS_SOCKET, errno: no, when: []condition{
			{arg: 2, mask: whole, value: unix.IPPROTO_IP, differs: true}, {arg: 2, mask: whole, value: unix.IPPROTO_TCP, differs: true},
		}},
		rule{call: unix.SYS_LISTEN, errno: no},
	)
	for call, flags := range map[uint32]int{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		rules = append(rules, rule{call: call, errno: no, when: []condition{{arg: flags, mask: unix.MSG_FASTOPEN, value: unix.MSG_FASTOPEN}}})
	}
	return rules
}

// Offsets in struct seccomp_data, which is what a filter sees of a call.
const (
	callOffset = 0
	archOffset = 4
	argsOffset = 16
	argSize    = 8
	// otherABI is the first system call number of another ABI of the same machine, such as x32.
	otherABI = 0x40000000
)

// Instructions of a filter.
const (
	load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and       = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	jumpEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpFrom  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	give      = unix.BPF_RET | unix.BPF_K
)

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
		{Code: jumpFrom, K: otherABI, Jf: 1},
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
		f = append(append(f, tests...), refuseWith(r.errno))
	}
	return append(f, syscall.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW})
}
