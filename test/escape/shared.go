// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package escape

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scheduling are attempts to hinder other processes of the same user. Each sets what is set already.
func (t Target) scheduling() []attempt {
	return slices.Concat(
		each("limit", t.Processes, func(pid int) error {
			var now unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
		}),
		each("slow down", t.Processes, func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 0) }),
		each("slow the disk down for", t.Processes, func(pid int) error {
			const process = 1
			_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, process, uintptr(pid), 0)
			return nilOf(errno)
		}),
		each("schedule", t.Processes, func(pid int) error {
			var param int32
			_, _, errno := unix.Syscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), unix.SCHED_NORMAL, uintptr(unsafe.Pointer(&param)))
			return nilOf(errno)
		}),
		each("choose the processors of", t.Processes, func(pid int) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(pid, &set)
		}),
	)
}

// shared are attempts to use what processes of one user share beside files.
func (t Target) shared() []attempt {
	const key, create = 0x45534341, unix.IPC_CREAT | 0o600
	get := func(number, remove uintptr, args ...uintptr) func() error {
		return func() error {
			var a [3]uintptr
			copy(a[:], args)
			id, _, errno := unix.Syscall(number, a[0], a[1], a[2])
			if errno == 0 && remove == unix.SYS_SEMCTL {
				_, _, _ = unix.Syscall(remove, id, 0, unix.IPC_RMID)
			} else if errno == 0 {
				_, _, _ = unix.Syscall(remove, id, unix.IPC_RMID, 0)
			}
			return nilOf(errno)
		}
	}
	return []attempt{
		{"share memory", get(unix.SYS_SHMGET, unix.SYS_SHMCTL, key, 4096, create)},
		{"share semaphores", get(unix.SYS_SEMGET, unix.SYS_SEMCTL, key, 1, create)},
		{"share a queue", get(unix.SYS_MSGGET, unix.SYS_MSGCTL, key, create)},
		{"share a queue of POSIX", func() error {
			name := []byte("escape\x00")
			fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
			if errno == 0 {
				_ = unix.Close(int(fd))
				_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
			}
			return nilOf(errno)
		}},
	}
}
