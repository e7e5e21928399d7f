// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// startRoom is the least limit until a program has begun: the threads of what starts it count as well.
const startRoom = 16

// limitFile has the limit of processes and threads of a group.
const limitFile = "pids.max"

// Group is the control group of one program.
type Group struct {
	dir string
	// file is the folder of a group of version 2; nil in version 1.
	file *os.File
}

// Dir returns the folder of the group.
func (g *Group) Dir() string { return g.dir }

// open prepares the group for Start.
func (g *Group) open() error {
	v2, err := isUnified(g.dir)
	if err != nil || !v2 {
		return err
	}
	kind, err := os.ReadFile(filepath.Join(g.dir, "cgroup.type"))
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(kind)) == "domain invalid" { // the group above has processes
		if err := write(g.dir, "cgroup.type", "threaded"); err != nil {
			return err
		}
	}
	g.file, err = os.Open(g.dir)
	return err
}

// Limit sets how many processes and threads the group may have. Those above it go on, but start no others.
func (g *Group) Limit(most uint64) error {
	return write(g.dir, limitFile, strconv.FormatUint(most, 10))
}

// OpenLimit opens the file of the limit, into which the limit is written as a decimal number. The caller closes it.
func (g *Group) OpenLimit() (*os.File, error) {
	return os.OpenFile(filepath.Join(g.dir, limitFile), os.O_WRONLY, 0)
}

// Start calls start, which must start one process with these attributes on the present thread. The process is in the group
// from its first instruction.
//
// In version 1 a process begins in the group of the thread that makes it, so the thread enters the group meanwhile. Writing
// the number of the new process would do as well, but takes up to 15 ms, because the kernel then waits for all processors.
func (g *Group) Start(attr *syscall.SysProcAttr, start func() error) error {
	if g.file != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(g.file.Fd())
		return start()
	}
	runtime.LockOSThread() // Go makes no threads from one that is locked
	if err := write(g.dir, "tasks", "0"); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err := start()
	if back := write(filepath.Dir(g.dir), "tasks", "0"); back != nil {
		return errors.Join(err, fmt.Errorf("leave the control group of a program: %w", back)) // the thread ends with its goroutine
	}
	runtime.UnlockOSThread()
	return err
}

const (
	// killRounds bounds how often the members are read. No process is added, so two rounds are usual.
	killRounds = 100
	// killAtOnce is how many members are killed before the first is waited for.
	killAtOnce = 64
	// killWaitMillis is the longest wait for one member in a round.
	killWaitMillis = 200
)

// Kill ends all processes of the group, and returns when they have ended.
func (g *Group) Kill() error {
	if err := g.Limit(0); err != nil && !errors.Is(err, fs.ErrNotExist) { // from now on nothing is added
		return err
	}
	_ = write(g.dir, "cgroup.kill", "1") // ends all at once; version 1, threaded groups and Linux before 5.14 lack it
	for round := range killRounds {
		pids, err := g.members()
		if err != nil || len(pids) == 0 {
			return err
		}
		waited := false
		for some := range slices.Chunk(pids, killAtOnce) {
			waited = g.killAll(some) || waited
		}
		if !waited { // threads that are ending
			_, _ = unix.Poll(nil, min(4*round, killWaitMillis))
		}
	}
	return errors.New("processes are still alive after being killed")
}

// members returns the living processes of the group. For a threaded group it also returns the numbers of threads.
func (g *Group) members() ([]int, error) {
	b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if errors.Is(err, unix.EOPNOTSUPP) {
		b, err = os.ReadFile(filepath.Join(g.dir, "cgroup.threads"))
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) { // it was removed
		return nil, nil
	}
	var pids []int
	for line := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// killAll kills members, and waits for each of them for a while. A number may belong to another process by now, so the process is
// held first and then compared. It returns false if there was none that can be waited for.
func (g *Group) killAll(pids []int) bool {
	var fds []unix.PollFd
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case !g.has(pid):
			_ = unix.Close(fd)
		case err != nil: // a thread: the first one of its process may have ended, so that it is the only way to the process
			_ = unix.Kill(pid, unix.SIGKILL)
		default:
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	for i := range fds {
		_, _ = unix.Poll(fds[i:i+1], killWaitMillis)
		_ = unix.Close(int(fds[i].Fd))
	}
	return len(fds) > 0
}

// has reports whether a process is in the group. In version 1 a thread that has ended is in the group of all, and so is a process
// whose first thread has.
func (g *Group) has(pid int) bool {
	process := filepath.Join("/proc", strconv.Itoa(pid))
	if g.is(process) {
		return true
	}
	threads, _ := filepath.Glob(filepath.Join(process, "task", "*"))
	return slices.ContainsFunc(threads, g.is)
}

// is reports whether a thread, by its folder in /proc, is in the group.
func (g *Group) is(thread string) bool {
	groups, err := os.ReadFile(filepath.Join(thread, "cgroup"))
	return err == nil && slices.ContainsFunc(strings.Split(string(groups), "\n"), func(line string) bool {
		return strings.HasSuffix(line, "/"+filepath.Base(g.dir))
	})
}

const (
	// removeRounds and removeWaitMillis bound the time that a group takes to become empty after its last process has ended.
	removeRounds     = 200
	removeWaitMillis = 5
)

// Remove removes the group, which must have no living processes.
func (g *Group) Remove() error {
	if g.file != nil {
		_ = g.file.Close()
	}
	var err error
	for range removeRounds {
		err = unix.Rmdir(g.dir)
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		_, _ = unix.Poll(nil, removeWaitMillis) // the kernel tells nobody when the last thread has left
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: g.dir, Err: err}
	}
	return nil
}
