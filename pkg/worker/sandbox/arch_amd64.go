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
