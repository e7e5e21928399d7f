// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package shim

// What package syscall lacks, as in Linux's headers. golang.org/x/sys/unix has all of it, but needs many packages that
// would be initialized before this one. The numbers are the same on all architectures that have a sandbox.
const (
	sysCloseRange           = 436
	sysLandlockAddRule      = 445
	sysLandlockRestrictSelf = 446

	oPath             = 0x200000
	closeRangeCloexec = 4

	prCapbsetDrop      = 24
	prSetNoNewPrivs    = 38
	prGetNoNewPrivs    = 39
	seccompFilter      = 1 // SECCOMP_SET_MODE_FILTER
	seccompNewListener = 0x8
	seccompKillable    = 0x20
	capabilityVersion3 = 0x20080522
	rulePathBeneath    = 1
)

// pathBeneath is struct landlock_path_beneath_attr. The kernel's is packed: it reads its first 12 bytes, which are the same.
type pathBeneath struct {
	rights uint64
	fd     int32
}
