// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/runspec"
)

// stat is the part of /proc/PID/stat that is needed here.
type stat struct {
	pid, ppid, session int
	startTicks         uint64
	dead               bool // a zombie, or being reaped
}

// bootID changes with every boot of the machine.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, b)
}

// parseStat counts fields from the last ")": the command name before it may hold anything.
func parseStat(pid int, b []byte) (stat, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, fmt.Errorf("stat of process %d: no command name", pid)
	}
	// f[0] is field 3 (state), so field n is f[n-3].
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return stat{}, fmt.Errorf("stat of process %d: %d fields", pid, len(f))
	}
	ppid, err1 := strconv.Atoi(f[4-3])
	session, err2 := strconv.Atoi(f[6-3])
	start, err3 := strconv.ParseUint(f[22-3], 10, 64)
	if err := errors.Join(err1, err2, err3); err != nil {
		return stat{}, fmt.Errorf("stat of process %d: %w", pid, err)
	}
	return stat{pid: pid, ppid: ppid, session: session, startTicks: start, dead: f[0] == "Z" || f[0] == "X"}, nil
}

// tree finds the processes of one run.
type tree struct {
	dir        string // run folder
	marker     [][]byte
	leader     int
	startTicks uint64
	// sessionKnown is set while the leader is known to hold its pid, or held it a moment ago.
	// Without it another process may have taken the number of the session, and only the
	// environment and the working folder identify processes of the run.
	sessionKnown bool
}

func newTree(dir string, rec *record, sessionKnown bool) *tree {
	return &tree{
		dir: dir, leader: rec.PID, startTicks: rec.StartTicks, sessionKnown: sessionKnown,
		marker: [][]byte{
			[]byte(runspec.EnvTaskUID + "=" + string(rec.UID)),
			[]byte(runspec.EnvAttempt + "=" + strconv.Itoa(int(rec.Attempt))),
		},
	}
}

// members returns the living processes of the run: those of the worker's
// session, all their descendants, and those that left both but still carry the
// run's environment or work in its folder.
func (t *tree) members() ([]stat, error) {
	all, err := t.candidates()
	if err != nil {
		return nil, err
	}
	in := map[int]bool{}
	for _, s := range all {
		if t.sessionKnown && (s.pid == t.leader || s.session == t.leader) || t.marked(s.pid) {
			in[s.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if in[s.ppid] && !in[s.pid] {
				in[s.pid], grown = true, true
			}
		}
	}
	var out []stat
	for _, s := range all {
		if in[s.pid] && !s.dead {
			out = append(out, s)
		}
	}
	return out, nil
}

// candidates returns all processes that began after the run, except this one.
func (t *tree) candidates() ([]stat, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []stat
	self := os.Getpid()
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil || pid == self || pid == 1 {
			continue
		}
		s, err := readStat(pid)
		if err != nil || s.startTicks < t.startTicks { // gone meanwhile, or older
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

func (t *tree) marked(pid int) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if cwd, err := os.Readlink(filepath.Join(dir, "cwd")); err == nil {
		cwd = strings.TrimSuffix(cwd, " (deleted)")
		if cwd == t.dir || strings.HasPrefix(cwd, t.dir+string(filepath.Separator)) {
			return true
		}
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	vars := bytes.Split(env, []byte{0})
	for _, m := range t.marker { // a variable may be there twice, so they are not counted
		if !slices.ContainsFunc(vars, func(v []byte) bool { return bytes.Equal(v, m) }) {
			return false
		}
	}
	return true
}

// Killing takes several rounds, because a tree may fork while it is being killed. Each round
// kills all processes that it finds and waits for them. A round that finds none is the last.
const (
	killRounds = 100
	// killWaitMillis is the longest wait for one process in one round; a process
	// dies at once unless it hangs in the kernel.
	killWaitMillis = 200
)

// kill sends SIGKILL until nothing is left. It returns an error if the tree grows faster than it is killed.
func (t *tree) kill() error {
	for range killRounds {
		ms, err := t.members()
		if err != nil {
			return err
		}
		if len(ms) == 0 {
			return nil
		}
		if err := killExact(ms); err != nil {
			return err
		}
	}
	return fmt.Errorf("processes of %s are still alive", t.dir)
}

// killExact kills exactly the given processes, not others that got their pids meanwhile, and
// waits until they are dead.
func killExact(ms []stat) error {
	var fds []unix.PollFd
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(int(fd.Fd))
		}
	}()
	for _, m := range ms {
		fd, err := openExact(m.pid, m.startTicks)
		if err != nil {
			return err
		}
		if fd < 0 {
			continue
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		if err := signalFD(fd, unix.SIGKILL); err != nil {
			return err
		}
	}
	for i := range fds {
		if _, err := unix.Poll(fds[i:i+1], killWaitMillis); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for killed process: %w", err)
		}
	}
	return nil
}

// openExact opens a pidfd of the process with this pid and start time; -1 when it is gone.
func openExact(pid int, startTicks uint64) (int, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	// EINVAL and ENOENT mean that the number is now that of a thread. Which of the two it is depends on the kernel.
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return -1, nil
	}
	if err != nil {
		return -1, fmt.Errorf("pidfd of %d: %w", pid, err)
	}
	// Only now: what the pidfd holds cannot change any more.
	if !isProcess(pid, startTicks) {
		_ = unix.Close(fd)
		return -1, nil
	}
	return fd, nil
}

// isProcess reports whether the pid belongs to a living process with this start time.
func isProcess(pid int, startTicks uint64) bool {
	s, err := readStat(pid)
	return err == nil && s.startTicks == startTicks && !s.dead
}

func signalFD(fd int, sig unix.Signal) error {
	err := unix.PidfdSendSignal(fd, sig, nil, 0)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %s: %w", sig, err)
	}
	return nil
}
