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

	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// process is the part of /proc/PID/stat that is needed here.
type process struct {
	pid, ppid, group, session, threads int
	start                              uint64 // in ticks since the boot
	dead                               bool
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
	var e1, e2, e3, e4, e5 error
	p.ppid, e1 = strconv.Atoi(f[1])
	p.group, e5 = strconv.Atoi(f[2])
	p.session, e2 = strconv.Atoi(f[3])
	p.threads, e3 = strconv.Atoi(f[17])
	p.start, e4 = strconv.ParseUint(f[19], 10, 64)
	p.dead = p.dead && p.threads <= 1 // only its first thread may have ended
	return p, errors.Join(e1, e2, e3, e4, e5) == nil
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
	// group is the control group that all of it is in; nil if there is none.
	group *cgroup.Group
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
	children := map[int][]int{}
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p.pid)
	}
	in := map[int]bool{}
	var add func(pid int)
	add = func(pid int) {
		if !in[pid] {
			in[pid] = true
			for _, child := range children[pid] {
				add(child)
			}
		}
	}
	add(t.leader)
	for _, p := range all {
		if p.session == t.leader || t.sole && p.ppid == self {
			add(p.pid)
		}
	}
	for _, p := range all {
		if !in[p.pid] && t.marked(p.pid) { // this takes longest
			add(p.pid)
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
	if env, err := os.ReadFile(procPath(pid, "environ")); !errors.Is(err, unix.ESRCH) {
		return err == nil && t.marks(env)
	}
	// The first thread has ended. Others that have not still have the environment.
	threads, _ := filepath.Glob(procPath(pid, "task/*/environ"))
	return slices.ContainsFunc(threads, func(file string) bool {
		env, err := os.ReadFile(file) //nolint:gosec // of a process
		return err == nil && t.marks(env)
	})
}

// marks reports whether the marker is in an environment.
func (t *tree) marks(env []byte) bool {
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
	killRounds = 2000
	// roundWaitMillis is the longest wait for one process in a round.
	roundWaitMillis = 100
)

// kill ends the tree. A control group has all of it. What is found otherwise is killed as well, because a program without a
// sandbox may have left the group.
func (t *tree) kill() error {
	if t.group == nil {
		return t.killFound()
	}
	return errors.Join(t.group.Kill(), t.killFound())
}

// killFound sends SIGKILL until nothing is left. It begins with the leader's group, which needs no list of processes, and
// waits for processes to end only when it finds no new ones: what forks meanwhile forks on.
func (t *tree) killFound() error {
	if p, ok := readProcess(t.leader); ok && p.group == t.leader {
		_ = unix.Kill(-t.leader, unix.SIGKILL) // the leader was not reaped, so the group is its own
	}
	type id struct {
		pid   int
		start uint64
	}
	killed := map[id]bool{}
	for range killRounds {
		members, err := t.members()
		if err != nil {
			return err
		}
		// A process that is ending has lost its environment, so it may not be found again.
		for k := range killed {
			p, ok := readProcess(k.pid)
			switch {
			case !ok || p.start != k.start || p.dead:
				delete(killed, k)
			case !slices.ContainsFunc(members, func(m process) bool { return m.pid == p.pid }):
				members = append(members, p)
			}
		}
		if len(members) == 0 {
			return nil
		}
		wait, fresh := roundWaitMillis, members[:0:0]
		for _, m := range members {
			if !killed[id{m.pid, m.start}] {
				killed[id{m.pid, m.start}] = true
				wait, fresh = 0, append(fresh, m)
			}
		}
		if wait > 0 {
			fresh = members
		}
		if err := signalAll(fresh, unix.SIGKILL, wait); err != nil {
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
//
// Processes that are killed and have a session of their own are killed with their group: the kernel does so at once for
// all of them, so that not even a program that does nothing but fork can go on in its children.
func signalAll(members []process, s unix.Signal, waitMillis int) error {
	var fds []unix.PollFd
	own, err := unix.Getsid(0)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	groups := map[int]bool{}
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
		} else if g := p.group; s == unix.SIGKILL && g > 1 && p.session != own && !groups[g] {
			groups[g] = true
			_ = unix.Kill(-g, s) // the process itself is signalled in any case
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
	if l.Processes > 0 && kernelCounts() {
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
