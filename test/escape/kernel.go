// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What listmount(2) and statmount(2) are asked.
const (
	allMounts     = ^uint64(0) // LSMT_ROOT
	uniqueMount   = 0x4000     // STATX_MNT_ID_UNIQUE
	describePlace = 0x10       // STATMOUNT_MNT_POINT
)

// askOfMounts asks the kernel about a mount, with room for so many items of its answer, and fails if it does not answer.
func askOfMounts(number uintptr, mount, param uint64, room uintptr) error {
	ask := struct {
		size, spare  uint32
		mount, param uint64
	}{size: 24, mount: mount, param: param}
	var answer [512]uint64
	_, _, errno := unix.Syscall6(number, uintptr(unsafe.Pointer(&ask)), uintptr(unsafe.Pointer(&answer)), room, 0, 0, 0)
	return nilOf(errno)
}

// kernel are attempts to change or to observe the kernel.
func (t Target) kernel() []attempt {
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			var a [5]uintptr
			copy(a[:], args)
			fd, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], 0)
			if errno == 0 && int(fd) > 2 {
				_ = unix.Close(int(fd))
			}
			return nilOf(errno)
		}
	}
	var buffer [256]byte
	memory := uintptr(unsafe.Pointer(&buffer))
	return []attempt{
		{"make a user namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }},
		{"make a network namespace", func() error { return unix.Unshare(unix.CLONE_NEWNET) }},
		{"enter a namespace", func() error {
			fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Setns(fd, 0)
		}},
		{"mount", func() error { return unix.Mount("none", t.Work, "tmpfs", 0, "") }},
		{"copy a mount", func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLOEXEC)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"list mounts", func() error {
			return askOfMounts(unix.SYS_LISTMOUNT, allMounts, 0, 512)
		}},
		{"describe a mount", func() error {
			var root unix.Statx_t
			if err := unix.Statx(unix.AT_FDCWD, "/", 0, uniqueMount, &root); err != nil {
				return err
			}
			return askOfMounts(unix.SYS_STATMOUNT, root.Mnt_id, describePlace, 4096)
		}},
		{"change the root", func() error { return unix.PivotRoot(t.Work, t.Work) }},
		{"load a program into the kernel", call(unix.SYS_BPF, 0, memory, 48)},
		{"count events", func() error {
			fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: unix.PERF_ATTR_SIZE_VER1, Config: unix.PERF_COUNT_SW_PAGE_FAULTS, Bits: unix.PerfBitExcludeKernel}, 0, -1, -1, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
		{"handle page faults", call(unix.SYS_USERFAULTFD, 1)},
		{"load a module", call(unix.SYS_INIT_MODULE, memory, 1, memory)},
		{"load a kernel", call(unix.SYS_KEXEC_LOAD)},
		{"load a kernel from a file", call(unix.SYS_KEXEC_FILE_LOAD)},
		{"read the kernel's log", func() error {
			const all = 3
			_, err := unix.Klogctl(all, buffer[:])
			return err
		}},
		{"have a core file written", func() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) }},
		{"add a key", call(unix.SYS_ADD_KEY, memory, memory, memory, 1)},
		{"restart the machine", func() error { return unix.Reboot(0) }},
		{"set the clock", func() error { return unix.Settimeofday(&unix.Timeval{Sec: 1}) }},
		{"take a file from another user", func() error {
			own := filepath.Join(t.Work, "given")
			if err := os.WriteFile(own, nil, 0o600); err != nil {
				return err
			}
			return os.Chown(own, 65533, 65533)
		}},
	}
}
