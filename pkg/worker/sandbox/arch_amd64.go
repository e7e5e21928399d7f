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
		unix.SYS_CHMOD:  {change: changeMode, dir: absent, value: 1, flags: absent},
		unix.SYS_CHOWN:  {change: changeOwner, dir: absent, value: 1, flags: absent},
		unix.SYS_LCHOWN: {change: changeOwner, dir: absent, value: 1, flags: absent, link: true},
	}
}

// olderTimes returns calls that set times and that newer architectures and C libraries do without.
func olderTimes() []uint32 { return []uint32{unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT} }
