// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// userHZ is the unit of start times in /proc: ticks of a second.
	userHZ = 100
	// pidsPerSecond is more than any machine gives out.
	pidsPerSecond = 1_000_000
)

// ascending reports whether every process that began after the one with this pid and start time, and is alive now, has a higher pid.
// The kernel gives out pids in ascending order and begins again at the end of their range.
func ascending(pid int, startTicks uint64) bool {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	limit, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return false
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return false
	}
	age := time.Duration(now.Nano()) - time.Duration(startTicks)*(time.Second/userHZ)
	return notBegunAgain(load, limit, pid, age)
}

// notBegunAgain is ascending for the content of /proc/loadavg, whose last word is the pid given out last, that of
// /proc/sys/kernel/pid_max, and the age of the process. The kernel has begun again if the last pid is lower than that of the process.
// If it is not, the kernel may have gone through the whole range meanwhile, which takes time.
func notBegunAgain(load, limit []byte, pid int, age time.Duration) bool {
	words := bytes.Fields(load)
	if len(words) == 0 {
		return false
	}
	last, err := strconv.Atoi(string(words[len(words)-1]))
	if err != nil {
		return false
	}
	most, err := strconv.Atoi(string(bytes.TrimSpace(limit)))
	if err != nil {
		return false
	}
	return last >= pid && age >= 0 && age < time.Duration(most)*time.Second/pidsPerSecond
}
