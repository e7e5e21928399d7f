// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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
	return readStatIn(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/stat", pid)
}

// maxStat is more than a stat file has: a name of at most 64 bytes and 51 numbers.
const maxStat = 2048

// readStatIn reads a stat file by its path in the folder dir. It does without os.ReadFile, which takes twice as many
// system calls, because the end of a run reads the files of all processes.
func readStatIn(dir int, path string, pid int) (stat, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return stat{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	var b [maxStat]byte
	n, err := unix.Read(fd, b[:]) // these files are read as a whole
	if err != nil {
		return stat{}, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return parseStat(pid, b[:n])
}

// parseStat counts fields from the last ")": the command name before it may hold anything.
func parseStat(pid int, b []byte) (stat, error) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, fmt.Errorf("stat of process %d: no command name", pid)
	}
	// Field 3 (state) is the first one after the name.
	out := stat{pid: pid}
	field := 3
	for f := range bytes.FieldsSeq(b[i+1:]) {
		var err error
		switch field {
		case 3:
			out.dead = f[0] == 'Z' || f[0] == 'X'
		case 4:
			out.ppid, err = strconv.Atoi(string(f))
		case 6:
			out.session, err = strconv.Atoi(string(f))
		case 22:
			out.startTicks, err = strconv.ParseUint(string(f), 10, 64)
			if err == nil {
				return out, nil
			}
		}
		if err != nil {
			return stat{}, fmt.Errorf("stat of process %d: %w", pid, err)
		}
		field++
	}
	return stat{}, fmt.Errorf("stat of process %d: %d fields", pid, field-3)
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
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []stat
	dir, self := int(proc.Fd()), os.Getpid()
	lowest := 2
	if ascending(t.leader, t.startTicks) { // asked after the list was made, so it holds for all of the list
		lowest = t.leader
	}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == self || pid < lowest {
			continue
		}
		s, err := readStatIn(dir, n+"/stat", pid)
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
