// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import "golang.org/x/sys/unix"

// filterRules refuses calls that Landlock does not cover, or not in all its versions:
//
//   - Sockets. They reach the server's ports, abstract and named sockets of other programs (a container engine's
//     among them) and the network. A pair of connected sockets can reach nothing else and remains allowed.
//   - What programs of one user share beside files: see sharedRules.
//   - Limits and the scheduling of other processes: see processRules.
//   - Keyrings, which belong to the operator's session, the kernel's log, and watches of whole file systems.
//   - io_uring, whose operations filters do not see.
//   - Namespaces and mounts, programs and modules for the kernel, and its counters and page faults. A program needs
//     privileges for most of these, or a user namespace, in which it has them: much of the kernel can only be attacked
//     from there. Inside its Landlock domain a program gains nothing with them.
//   - Attributes of files: see attributeRules.
//   - Before version 3 of Landlock, truncating files without writing to them.
func filterRules(p Policy, k Kernel) []rule {
	rules := []rule{
		{call: unix.SYS_IO_URING_SETUP, errno: unix.ENOSYS},
		// A filter cannot read the flags of clone3, which are in memory. C libraries then use clone.
		{call: unix.SYS_CLONE3, errno: unix.ENOSYS},
		// The mounts of the machine, with the folders that they come from. No path leads to these, so Landlock does not see it.
		{call: unix.SYS_LISTMOUNT, errno: unix.ENOSYS},
		{call: unix.SYS_STATMOUNT, errno: unix.ENOSYS},
	}
	for _, call := range [...]uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		rules = append(rules, rule{call: call, errno: unix.EPERM, when: []condition{{arg: 0, mask: unix.CLONE_NEWUSER, value: unix.CLONE_NEWUSER}}})
	}
	rules = refuse(rules, unix.EPERM,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SYSLOG, unix.SYS_FANOTIFY_INIT,
		unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	)
	rules = append(append(rules, processRules()...), attributeRules()...)
	if p.Network {
		rules = append(rules, networkRules()...)
	} else {
		rules = append(append(rules, sharedRules()...), socketRules(len(p.ports()) > 0, p.served() != nil)...)
	}
	if k.Landlock < truncateVersion {
		rules = append(rules, rule{call: unix.SYS_TRUNCATE, errno: unix.EACCES})
		for call, flags := range openCalls() {
			rules = append(rules, rule{call: call, errno: unix.EACCES, when: []condition{
				{arg: flags, mask: unix.O_TRUNC | unix.O_ACCMODE, value: unix.O_TRUNC | unix.O_RDONLY},
			}})
		}
	}
	return rules
}

// refuse adds rules that refuse calls altogether.
func refuse(rules []rule, errno unix.Errno, calls ...uint32) []rule {
	for _, call := range calls {
		rules = append(rules, rule{call: call, errno: errno})
	}
	return rules
}

// whole compares a whole argument.
const whole = ^uint32(0)

// sharedRules refuse what programs of one user share although they have no folder in common: message queues, semaphores and memory
// of System V, message queues of POSIX, and the names of files that others make, which watches report. A program with the network
// of its Pod shares them with its own worker alone, which uses none.
func sharedRules() []rule {
	rules := refuse(nil, unix.EACCES,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	)
	// Programs look at files from time to time instead where there are no watches.
	return refuse(append(rules, initWatches()...), unix.ENOSYS, unix.SYS_INOTIFY_INIT1)
}

// processRules refuse to change limits and scheduling of other processes, for which their user suffices: a limit of processor time
// ends any of them. A process changes its own by the number 0; a thread that names itself otherwise is refused as well. Nor may a
// process hide its memory and files from the worker, which counts them (PR_SET_DUMPABLE 0).
func processRules() []rule {
	var rules []rule
	for call, process := range map[uint32]int{
		unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETATTR: 0,
		unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
	} {
		rules = append(rules, rule{call: call, errno: unix.EPERM, when: []condition{{arg: process, mask: whole, value: 0, differs: true}}})
	}
	rules = append(rules, rule{call: unix.SYS_PRCTL, errno: unix.EPERM, when: []condition{
		{arg: 0, mask: whole, value: unix.PR_SET_DUMPABLE}, {arg: 1, mask: whole, value: 1, differs: true},
	}})
	return append(rules, // all processes of a user
		rule{call: unix.SYS_SETPRIORITY, errno: unix.EPERM, when: []condition{{arg: 0, mask: whole, value: unix.PRIO_USER}}},
		rule{call: unix.SYS_IOPRIO_SET, errno: unix.EPERM, when: []condition{{arg: 0, mask: whole, value: ioprioUser}}},
	)
}

// ioprioUser is IOPRIO_WHO_USER, which package unix lacks.
const ioprioUser = 3

const socketTypeMask = 0xf

// networkRules refuse sockets that are not of a network: those of the hypervisor and of the kernel's ciphers among them.
func networkRules() []rule {
	var others []condition
	for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		others = append(others, condition{arg: 0, mask: whole, value: family, differs: true})
	}
	return []rule{{call: unix.SYS_SOCKET, errno: unix.EACCES, when: others}}
}

// socketRules refuse sockets other than pairs of connected ones. This one rule closes TCP, UDP, the server's ports and the named
// sockets of other programs, on every version of Landlock. A Landlock rule for each TCP port except the server's would be 65,533
// rules, which take several times as long to set up as a program takes to start, and would leave UDP open.
//
// A program with a proxy may have sockets of TCP as well, whose connections Landlock limits to the proxy's port. What Landlock does
// not see of TCP is refused: sockets of its relatives (MPTCP), data that is sent along with a connection that was not asked for (TCP
// fast open), and listening without a port of one's own. A program with a Service may listen there, which is asked about.
func socketRules(proxy, serves bool) []rule {
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
	)
	if serves {
		rules = append(rules, serviceRules()...)
	} else {
		rules = append(rules, rule{call: unix.SYS_LISTEN, errno: no})
	}
	for call, flags := range map[uint32]int{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3} {
		rules = append(rules, rule{call: call, errno: no, when: []condition{{arg: flags, mask: unix.MSG_FASTOPEN, value: unix.MSG_FASTOPEN}}})
	}
	return rules
}
