// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Versions of the Landlock ABI that introduced the features used here.
const (
	referVersion    = 2
	truncateVersion = 3
	networkVersion  = 4
	ioctlVersion    = 5
	scopeVersion    = 6
)

const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// deviceRights are never granted: programs need not create device files.
	deviceRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// fileRights are the rights that a rule on a file may have; the others apply to folders only.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0 // missing, disabled, or not available to this process
	}
	return int(v)
}

// allRights returns the rights on files that a version supports. Rights that are not among them are not restricted.
func allRights(version int) uint64 {
	rights := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	if version >= referVersion {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= truncateVersion {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= ioctlVersion {
		rights |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rights
}

// newRuleset returns a Landlock ruleset with the grants of a policy. The shim adds its own entry in /proc.
func newRuleset(p Policy, k Kernel, grants []grant) (*os.File, error) {
	attr := unix.LandlockRulesetAttr{Access_fs: allRights(k.Landlock)}
	size := unsafe.Sizeof(attr.Access_fs)
	if k.Landlock >= networkVersion {
		size += unsafe.Sizeof(attr.Access_net)
		if !p.Network {
			attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if k.Landlock >= scopeVersion {
		size += unsafe.Sizeof(attr.Scoped)
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0) //nolint:gosec // a struct for the kernel
	if errno != 0 {
		return nil, fmt.Errorf("%w: Landlock: %w", ErrUnavailable, errno)
	}
	f := os.NewFile(ruleset, "landlock")
	if err := addGrants(int(ruleset), grants, allRights(k.Landlock)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	for _, port := range p.ports() {
		if err := allowPort(ruleset, port); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// netPort is struct landlock_net_port_attr, and ruleNetPort its type of rule, which package unix lacks.
type netPort struct{ allowedAccess, port uint64 }

const ruleNetPort = 2

// allowPort lets the program connect to a TCP port.
func allowPort(ruleset uintptr, port uint16) error {
	rule := netPort{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, ruleNetPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // a struct for the kernel
	if errno != 0 {
		return fmt.Errorf("%w: Landlock: port %d: %w", ErrUnavailable, port, errno)
	}
	return nil
}

func addGrants(ruleset int, grants []grant, all uint64) error {
	for _, g := range grants {
		rights := uint64(readRights)
		if g.write {
			rights = all &^ deviceRights
		}
		if err := allow(ruleset, g, rights&all); err != nil {
			return err
		}
	}
	return nil
}

// allow adds a rule. The path is already resolved. If it has become a link since then, the link is not followed.
func allow(ruleset int, g grant, rights uint64) error {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if g.optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES)) {
			return nil
		}
		return fmt.Errorf("the path %s of the sandbox: %w", g.path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("the path %s of the sandbox: %w", g.path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK: // the target has its own grant, or none
		return nil
	case unix.S_IFDIR:
	default:
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // a struct for the kernel
	if errno != 0 {
		return fmt.Errorf("%w: Landlock: %s: %w", ErrUnavailable, g.path, errno)
	}
	return nil
}
