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
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// process is the part of /proc/PID/stat that is needed here.
type process struct {
	pid, ppid, session, threads int
	start                       uint64 // in ticks since the boot
	dead                        bool
}

func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return process{}, false
	}
	// The command name, in parentheses, may hold anything: count from its end.
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return process{}, false
	}
	p := process{pid: pid, dead: f[0] == "Z" || f[0] == "X"}
	var e1, e2, e3, e4 error
	p.ppid, e1 = strconv.Atoi(f[1])
	p.session, e2 = strconv.Atoi(f[3])
	p.threads, e3 = strconv.Atoi(f[17])
	p.start, e4 = strconv.ParseUint(f[19], 10, 64)
	return p, e1 == nil && e2 == nil && e3 == nil && e4 == nil
}

func procPath(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

func allProcesses() ([]process, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, n := range names {
		if pid, err := strconv.Atoi(n.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// tree is a started program with all processes that it started. Its leader must not have been
// reaped.
type tree struct {
	leader int
	marker string
	// sole says that this process has no other children, so that all orphans that it adopts belong
	// to the tree.
	sole bool
}

// members returns the living processes of the tree: the session, those that carry the marker,
// orphans that this process adopted, and all descendants of these.
func (t *tree) members() ([]process, error) {
	all, err := allProcesses()
	if err != nil {
		return nil, err
	}
	// All members are younger than the leader. Others are not looked at more closely.
	leader, _ := readProcess(t.leader)
	all = slices.DeleteFunc(all, func(p process) bool { return p.start < leader.start })
	self := os.Getpid()
	in := map[int]bool{t.leader: true}
	for _, p := range all {
		if p.session == t.leader || t.sole && p.ppid == self || t.marked(p.pid) {
			in[p.pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.ppid] && !in[p.pid] {
				in[p.pid], grown = true, true
			}
		}
	}
	var out []process
	for _, p := range all {
		switch {
		case in[p.pid] && !p.dead:
			out = append(out, p)
		case t.sole && p.dead && p.ppid == self && p.pid != t.leader:
			// An adopted child stays a zombie until it is waited for.
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
	return out, nil
}

// gone reports that nothing of a sole tree is alive, once its leader has ended. This process adopts the orphans of the
// tree, so it is enough that it has no living child. A wait for stopped children fails with ECHILD in that case, because
// it does not count those that have ended.
func (t *tree) gone() bool {
	return t.sole && errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WSTOPPED|unix.WCONTINUED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD)
}

func (t *tree) marked(pid int) bool {
	if t.marker == "" { // an environment ends with an empty text, so every process would have it
		return false
	}
	env, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == t.marker {
			return true
		}
	}
	return false
}

// Killing takes several rounds, because a tree may fork while it is being killed. A round that
// finds nothing alive is the last.
const (
	killRounds = 200
	// roundWaitMillis is the longest wait for one process in a round.
	roundWaitMillis = 100
)

// kill sends SIGKILL until nothing is left.
func (t *tree) kill() error {
	for range killRounds {
		members, err := t.members()
		if err != nil || len(members) == 0 {
			return err
		}
		if err := signalAll(members, unix.SIGKILL, roundWaitMillis); err != nil {
			return err
		}
	}
	return errors.New("processes are still alive after being killed")
}

// signal sends one signal to all processes, once.
func (t *tree) signal(s unix.Signal) error {
	members, err := t.members()
	if err != nil {
		return err
	}
	return signalAll(members, s, 0)
}

// signalAll signals through pidfds, and waits for each to end for at most
// waitMillis. A process that is gone, or whose pid belongs to another by now, is skipped.
func signalAll(members []process, s unix.Signal, waitMillis int) error {
	var fds []unix.PollFd
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(int(fd.Fd))
		}
	}()
	for _, m := range members {
		fd, err := unix.PidfdOpen(m.pid, 0)
		if err != nil {
			continue
		}
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		// Compare only now, when the pidfd holds the process and cannot refer to another one.
		if p, ok := readProcess(m.pid); !ok || p.session != m.session || p.dead {
			continue
		}
		if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("signal process: %w", err)
		}
	}
	if waitMillis == 0 {
		return nil
	}
	for i := range fds {
		if _, err := unix.Poll(fds[i:i+1], waitMillis); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for process: %w", err)
		}
	}
	return nil
}

// rlimits returns the limits for setrlimit. The limit of processes is added to the number that the user runs now.
func rlimits(l sandbox.Limits) ([]sandbox.Limit, error) {
	var set []sandbox.Limit
	add := func(resource int, value uint64) { set = append(set, sandbox.Limit{Resource: resource, Value: value}) }
	if l.CPU > 0 {
		add(unix.RLIMIT_CPU, uint64(math.Ceil(l.CPU.Seconds())))
	}
	if l.Processes > 0 {
		now, err := userThreads()
		if err != nil {
			return nil, err
		}
		add(unix.RLIMIT_NPROC, now+l.Processes)
	}
	if l.MemoryBytes > 0 {
		add(unix.RLIMIT_DATA, l.MemoryBytes)
	}
	if l.FileBytes > 0 {
		add(unix.RLIMIT_FSIZE, l.FileBytes)
	}
	if len(set) > 0 {
		add(unix.RLIMIT_CORE, 0)
	}
	return set, nil
}

// userThreads counts what RLIMIT_NPROC counts: threads of all processes of the user.
func userThreads() (uint64, error) {
	all, err := allProcesses()
	if err != nil {
		return 0, err
	}
	uid := uint32(os.Getuid())
	n := 0
	for _, p := range all {
		var st unix.Stat_t
		if unix.Stat(filepath.Join("/proc", strconv.Itoa(p.pid)), &st) == nil && st.Uid == uid {
			n += p.threads
		}
	}
	return uint64(n), nil
}
