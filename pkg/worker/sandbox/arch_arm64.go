// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// openCalls returns the system calls that open a file with flags, and the index of the flags among the arguments.
func openCalls() map[uint32]int { return map[uint32]int{unix.SYS_OPENAT: 2} }

// initWatches refuses nothing: the architecture lacks the older call that begins watches of files.
func initWatches() []rule { return nil }

func olderAttributeCalls() map[uint32]attributeCall { return map[uint32]attributeCall{} }

func creations() map[uint32]int { return map[uint32]int{unix.SYS_MKNODAT: 2} }
