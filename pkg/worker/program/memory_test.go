// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// A program that the kernel ends for lack of memory is told from one that somebody kills.
func TestOutOfMemory(t *testing.T) { //nolint:paralleltest // it counts what the kernel ends on the whole machine
	group := smallGroup(t)
	for _, tc := range []struct {
		name, script string
		want         Outcome
	}{
		{"killed by the kernel", `echo $$ >"$1" && x=$(head -c 300m /dev/zero | tr "\0" x) && echo ${#x}`, Outcome{ExitCode: 137, Signal: "SIGKILL", OutOfMemory: true, Began: true}},
		{"a child, killed by the kernel", `echo $$ >"$1" && head -c 400m /dev/zero | tail -c 300m >/dev/null; exit $?`, Outcome{ExitCode: 137, OutOfMemory: true, Began: true}},
		{"killed by hand", `kill -9 $$`, Outcome{ExitCode: 137, Signal: "SIGKILL", Began: true}},
		{"failed", `exit 3`, Outcome{ExitCode: 3, Began: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Run(t.Context(), Command{
				Args: []string{"/bin/bash", "-c", tc.script, "test", group}, Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")},
				Policy: sandbox.Policy{Off: true}, Sole: true, Clock: clock.RealClock{},
			})
			if err != nil || got != tc.want {
				t.Errorf("got %+v %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// smallGroup makes a control group of 64 MiB, and returns the file that puts a process into it.
func smallGroup(t *testing.T) string {
	t.Helper()
	for _, v := range []struct{ root, limit, swap, members string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "cgroup.procs"},
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "cgroup.procs"},
	} {
		dir := filepath.Join(v.root, "platform-test-"+strconv.Itoa(os.Getpid()))
		if err := unix.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := unix.Rmdir(dir); err != nil {
				t.Error(err)
			}
		})
		if os.WriteFile(filepath.Join(dir, v.limit), []byte("67108864"), 0) != nil {
			continue
		}
		_ = os.WriteFile(filepath.Join(dir, v.swap), []byte("67108864"), 0) // without swap there is no such file
		return filepath.Join(dir, v.members)
	}
	t.Skip("no control group with a limit of memory can be made here, which root may do")
	return ""
}

func TestKills(t *testing.T) {
	file := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	for _, tc := range []struct {
		root fstest.MapFS
		want kills
	}{
		{file("sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 41\noom 3\noom_kill 2\noom_group_kill 0\n"), kills{container: 2}},
		{file("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), kills{container: 7}},
		{file("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\n"), kills{}},
		{file("sys/fs/cgroup/memory.events", "oom_kill many\n"), kills{}},
		{file("proc/vmstat", "nr_free_pages 5\noom_kill 3\n"), kills{machine: 3}},
		{fstest.MapFS{}, kills{}},
	} {
		if got := (kills{counted(tc.root, containerKills), counted(tc.root, machineKills)}); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.root, got, tc.want)
		}
	}
}

func TestKillsExplain(t *testing.T) {
	before := kills{container: 1, machine: 5}
	for _, tc := range []struct {
		name  string
		after kills
		o     Outcome
		want  bool
		alone bool // what is expected of a program that has the container for itself
	}{
		{"nothing was ended", before, Outcome{ExitCode: 137, Signal: "SIGKILL"}, false, false},
		{"a child in the container", kills{2, 6}, Outcome{ExitCode: 1}, true, true},
		{"a child that did not matter", kills{2, 6}, Outcome{}, false, true},
		{"on the machine", kills{1, 6}, Outcome{ExitCode: 137, Signal: "SIGKILL"}, true, true},
		{"on the machine, passed on by a shell", kills{1, 6}, Outcome{ExitCode: 137}, true, true},
		{"on the machine, something else", kills{1, 6}, Outcome{ExitCode: 1}, false, false},
	} {
		if got := before.explain(tc.after, tc.o, false); got != tc.want {
			t.Errorf("%s: %t", tc.name, got)
		}
		if got := before.explain(tc.after, tc.o, true); got != tc.alone {
			t.Errorf("%s, alone in the container: %t", tc.name, got)
		}
	}
}

// A program that has its container for itself ends as a whole once the kernel has ended a part of it.
func TestLosses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.events")
	n := 2
	count := func() {
		n++
		if err := os.WriteFile(file, fmt.Appendf(nil, "oom_kill %d\n", n), 0o600); err != nil {
			t.Error(err)
		}
	}
	count()
	defer func(before []string) { containerKills = before }(containerKills)
	containerKills = []string{strings.TrimPrefix(file, "/")}
	for _, alone := range []bool{true, false} {
		out := &begun{sync.OnceFunc(count)}
		_, err := Run(t.Context(), Command{
			Args: []string{"/bin/bash", "-c", `sleep 1000 & echo begun; if [ "$1" = true ]; then wait; fi`, "test", strconv.FormatBool(alone)},
			Dir:  t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: out,
			Policy: sandbox.Policy{Off: true}, Sole: true, Container: alone, Clock: clock.RealClock{},
		})
		if errors.Is(err, ErrMemory) != alone {
			t.Errorf("alone %t: %v", alone, err)
		}
	}
}

// begun calls first when a program has printed something.
type begun struct{ first func() }

func (b *begun) Write(p []byte) (int, error) {
	b.first()
	return len(p), nil
}
