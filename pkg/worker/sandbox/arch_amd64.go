// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// openCalls returns the system calls that open a file with flags, and the index of the flags among the arguments.
func openCalls() map[uint32]int { return map[uint32]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2} }

// initWatches refuses the call that begins watches of files and that newer architectures lack.
func initWatches() []rule { return refuse(nil, unix.ENOSYS, unix.SYS_INOTIFY_INIT) }

// olderAttributeCalls returns the calls that newer architectures lack.
func olderAttributeCalls() map[uint32]attributeCall {
	return map[uint32]attributeCall{
		unix.SYS_CHMOD:     {change: changeMode, dir: absent, value: 1, flags: absent},
		unix.SYS_CHOWN:     {change: changeOwner, dir: absent, value: 1, flags: absent},
		unix.SYS_LCHOWN:    {change: changeOwner, dir: absent, value: 1, flags: absent, link: true},
		unix.SYS_UTIME:     {change: changeTimes, dir: absent, value: 1, flags: absent, times: inSeconds},
		unix.SYS_UTIMES:    {change: changeTimes, dir: absent, value: 1, flags: absent, times: inMicroseconds},
		unix.SYS_FUTIMESAT: {change: changeTimes, path: 1, value: 2, flags: absent, times: inMicroseconds},
	}
}

// creations returns the calls besides openCalls that make a file with a mode, and the index of the mode among the arguments.
func creations() map[uint32]int {
	return map[uint32]int{unix.SYS_CREAT: 1, unix.SYS_MKNOD: 1, unix.SYS_MKNODAT: 2}
}
