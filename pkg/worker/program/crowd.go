// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrCrowded is in the chain of the error for a program that was ended because it ran more processes and threads than
// its limit.
var ErrCrowded = errors.New("too many processes")

// crowdMillis is the time between two looks at the number of processes. A program that does nothing but fork makes some
// hundreds in that time.
const crowdMillis = 20

// firstPIDNamespace is the inode of the machine's first namespace of process ids (PROC_PID_INIT_INO of the kernel).
const firstPIDNamespace = "pid:[4026531836]"

// kernelCounts reports whether RLIMIT_NPROC can bound the processes of a program. It does not bind root, and it counts
// all processes of the user on the machine: from a container those of other containers are not seen, so that they
// cannot be added to the limit.
func kernelCounts() bool {
	ns, err := os.Readlink("/proc/self/ns/pid")
	return os.Getuid() != 0 && err == nil && ns == firstPIDNamespace
}

// watchCrowd begins to count processes. If the tree has more processes and threads than most, it is killed. There is no watcher for a
// most of 0, or if the kernel counts, for the tree's control group or for its user.
//
// Counting reads a file for each process of the machine, so it is done only after the machine as a whole has got half as
// many more as the tree may have.
func (t *tree) watchCrowd(most uint64) (*watcher, error) {
	if most == 0 || t.group != nil || kernelCounts() {
		return nil, nil //nolint:nilnil // nothing to do
	}
	others := uint64(math.MaxUint64) // on the machine, beside the tree
	return watch(func() (pause int, err error) {
		all, err := machineThreads()
		if err != nil {
			return crowdMillis, nil
		}
		others = min(others, all)
		if all-others <= most/2 {
			return crowdMillis, nil
		}
		defer hurry()()
		n, err := t.threads()
		if n > most && err == nil {
			return 0, errors.Join(fmt.Errorf("%w: the program ran %d processes and threads, and may run %d", ErrCrowded, n, most), t.kill())
		}
		others = all - min(n, all)
		return crowdMillis, nil
	})
}

// hurry lets this process run before others, because a tree that forks competes with it for the processors, and returns
// what undoes that. Only root may do it.
func hurry() (undo func()) {
	const urgent = -10
	was, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || os.Getuid() != 0 {
		return func() {}
	}
	renice(urgent)
	return func() { renice(20 - was) } // the system call returns 20 minus the value
}

// renice sets the nice value of all threads of this process.
func renice(nice int) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, tid, nice)
		}
	}
}

// threads counts the threads of the tree's processes.
func (t *tree) threads() (n uint64, err error) {
	members, err := t.members()
	for _, m := range members {
		n += uint64(max(m.threads, 1))
	}
	return n, err
}

// machineThreads returns how many threads the machine has, which is the second number in the fourth column of
// /proc/loadavg.
func machineThreads() (uint64, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(b)
	if len(fields) < 4 {
		return 0, fmt.Errorf("/proc/loadavg has %d columns", len(fields))
	}
	_, total, _ := bytes.Cut(fields[3], []byte("/"))
	return strconv.ParseUint(string(total), 10, 64)
}
