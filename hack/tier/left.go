// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
)

// adoptOrphans makes this process the parent of all processes below it that lose theirs.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// mostProcesses is the largest limit that a control group can have.
const mostProcesses = 1 << 22

// makeGroup makes the control group in which a command runs, so that the groups which its servers make lie below it; nil where none
// can be made. Other servers on the machine make theirs elsewhere.
func makeGroup() (*cgroup.Group, error) {
	dir, err := cgroup.Find()
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // then servers make none either
	}
	return cgroup.Place{Dir: dir, Run: "tier"}.Make(mostProcesses)
}

// removeGroups removes the control group of a command that has ended, with those below it, and names the latter. A server that is
// killed while it tries out whether it can make groups leaves one, which the next server would remove.
func removeGroups(g *cgroup.Group) ([]string, error) {
	if g == nil {
		return nil, nil
	}
	var below, names []string
	err := filepath.WalkDir(g.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != g.Dir() {
			below = append(below, path)
		}
		return err
	})
	for _, path := range slices.Backward(below) {
		_ = unix.Rmdir(path) // or the group above cannot be removed
		if !cgroup.IsProbe(path) {
			names = append(names, "control group "+path)
		}
	}
	return names, errors.Join(err, g.Remove())
}

// state is what of the machine a command may not change for good.
type state struct {
	temporary string              // folder for temporary files, empty at first
	things    map[string]struct{} // mounts, network namespaces and control groups of clusters
}

func look(temporary string) (state, error) {
	s := state{temporary: temporary, things: map[string]struct{}{}}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(mounts)) {
		// Others may mount on this machine, too: the tests do so in their temporary folders, and clusters have a name.
		if f := strings.Fields(line); len(f) > 4 && (strings.HasPrefix(f[4], temporary) || strings.Contains(f[4], "platform")) {
			s.things["mount "+f[4]] = struct{}{}
		}
	}
	namespaces, err := os.ReadDir("/run/netns")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, n := range namespaces {
		s.things["network namespace "+n.Name()] = struct{}{}
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it ended meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && strings.Contains(d.Name(), "."): // of a tier or of a server; those of the command lie in its own group
			return fs.SkipDir
		case d.IsDir() && strings.Contains(path, "platform"): // a cluster's, which has a name
			s.things["control group "+path] = struct{}{}
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return s, err
}

// left waits for the processes that are left, ends those that do not end by themselves within a time, and names them, what is left in
// the command's control group, and all else that was not there before.
func (s state) left(ending time.Duration, group *cgroup.Group) ([]string, error) {
	left, err := endOrphans(ending)
	if err != nil {
		return nil, err
	}
	groups, err := removeGroups(group)
	if err != nil {
		return nil, err
	}
	left = append(left, groups...)
	now, err := look(s.temporary)
	if err != nil {
		return nil, err
	}
	for thing := range now.things {
		if _, ok := s.things[thing]; ok {
			continue
		}
		left = append(left, thing)
		if mount, ok := strings.CutPrefix(thing, "mount "+s.temporary); ok {
			_ = unix.Unmount(s.temporary+mount, unix.MNT_DETACH) // or the folder could not be removed
		}
	}
	files, err := os.ReadDir(s.temporary)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		left = append(left, "temporary file "+f.Name())
	}
	slices.Sort(left)
	return left, nil
}

// reap takes note of the ends of adopted processes until the context ends, as the init process does: whoever waits for the end of a
// process that is not its child would otherwise see it for ever. Except is the command itself, which another goroutine waits for.
func reap(ctx context.Context, except int) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	for {
		for _, pid := range children(true) {
			if pid != except {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// endOrphans waits for the children of this process. Those that do not end by themselves are named and ended, with what is below them.
func endOrphans(ending time.Duration) ([]string, error) {
	named := map[int]string{}
	for deadline := time.Now().Add(ending); ; time.Sleep(20 * time.Millisecond) { // children that are adopted announce nothing but their end
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return slices.Collect(maps.Values(named)), nil
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return nil, err
			}
			if pid == 0 {
				break
			}
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, pid := range children(false) {
			if named[pid] == "" {
				named[pid] = fmt.Sprintf("process %d: %s", pid, commandLine(pid))
			}
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended meanwhile; what is below it comes next
		}
	}
}

// children returns the children of this process that have ended and were not waited for, or those that have not ended.
func children(ended bool) []int {
	var pids []int
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range processes {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// "PID (NAME) STATE PPID ...", and the name may have spaces and brackets
		_, after, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		if f := strings.Fields(after); len(f) > 1 && (f[0] == "Z") == ended && f[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func commandLine(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "it has ended"
	}
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}
