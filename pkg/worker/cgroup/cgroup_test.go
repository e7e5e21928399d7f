// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/test/kit"
)

func TestCandidates(t *testing.T) {
	const (
		v2     = "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		pids   = "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		both   = "40 31 0:37 / /sys/fs/cgroup/cpu,pids rw - cgroup cgroup rw,cpu,pids\n"
		memory = "38 31 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		docker = "42 31 0:36 /docker/abc /sys/fs/cgroup/pids ro master:1 - cgroup cgroup rw,pids\n"
	)
	for name, tc := range map[string]struct {
		mounts, own string
		want        []string
	}{
		"service":          {v2, "0::/system.slice/platform.service\n", []string{"/sys/fs/cgroup/system.slice/platform.service"}},
		"namespace":        {v2, "0::/\n", []string{"/sys/fs/cgroup"}},
		"outside of it":    {v2, "0::/../other\n", nil},
		"version 1":        {memory + pids, "8:pids:/a\n4:memory:/b\n", []string{"/sys/fs/cgroup/pids/a"}},
		"mounted together": {both, "8:cpu,pids:/a\n", []string{"/sys/fs/cgroup/cpu,pids/a"}},
		"both versions":    {pids + hybrid, "8:pids:/a\n0::/b\n", []string{"/sys/fs/cgroup/pids/a", "/sys/fs/cgroup/unified/b"}},
		"part of it":       {docker, "8:pids:/docker/abc/x\n", []string{"/sys/fs/cgroup/pids/x"}},
		"another part":     {docker, "8:pids:/docker/other\n", nil},
		"none":             {"22 1 8:1 / / rw - ext4 /dev/sda rw\n", "0::/\n", nil},
		"unreadable":       {"x\n\n - cgroup2\n", "\n:\n", nil},
	} {
		if d := cmp.Diff(tc.want, candidates(tc.mounts, tc.own)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// place returns a place for groups of this test.
func place(t *testing.T) Place {
	t.Helper()
	dir, err := Find()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	return PlaceOf(dir, "test-"+strconv.Itoa(os.Getpid())+"-"+strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), 1)
}

// add starts a program in the group.
func add(t *testing.T, g *Group, args ...string) (*exec.Cmd, error) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := g.Start(cmd.SysProcAttr, cmd.Start)
	if err == nil {
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	}
	return cmd, err
}

// TestLimit: a group takes as many processes as its limit says, and the kernel refuses the next one.
func TestLimit(t *testing.T) {
	p := place(t)
	const most = startRoom + 4
	g, err := p.Make(most)
	if err != nil {
		t.Fatal(err)
	}
	started := 0
	for ; started <= most; started++ {
		if _, err = add(t, g, "sleep", "1000"); err != nil {
			break
		}
	}
	want := most
	if g.file == nil {
		want-- // in version 1 the thread that starts a process is in the group as well
	}
	if started != want || !errors.Is(err, unix.EAGAIN) {
		t.Errorf("%d processes were started, want %d; the next one: %v", started, want, err)
	}
	if err := g.Limit(1); err != nil {
		t.Error(err)
	}
	if _, err := add(t, g, "true"); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("under a lower limit: %v", err)
	}
	if err := errors.Join(g.Kill(), g.Remove()); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, p.Run+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestClear: all that a program started is ended with the run, whatever it did to be unknown, and nothing else is.
func TestClear(t *testing.T) {
	p := place(t)
	other, err := Place{p.Dir, p.Run + "0"}.Make(100) // attempt 10 is not attempt 1
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := add(t, other, "sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for range 2 {
		g, err := p.Make(100)
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		const escape = `for i in 1 2 3; do (setsid env -i /bin/sh -c 'trap "" TERM HUP; cd /; echo $$; sleep 1000 & wait' &) ; done; echo done`
		cmd := exec.Command("sh", "-c", escape)
		cmd.Stdout, cmd.SysProcAttr = w, &syscall.SysProcAttr{Setsid: true}
		if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		var said bytes.Buffer
		for b := make([]byte, 64); strings.Count(said.String(), "\n") < 4; {
			n, err := r.Read(b)
			if err != nil {
				t.Fatalf("%v after %q", err, said.String())
			}
			said.Write(b[:n])
		}
		_ = r.Close()
		_ = cmd.Wait()
		for line := range strings.FieldsSeq(said.String()) {
			if pid, err := strconv.Atoi(line); err == nil {
				pids = append(pids, pid)
			}
		}
		members, err := g.members()
		if err != nil || len(members) < 3 {
			t.Errorf("members %v, %v", members, err)
		}
	}
	if len(pids) != 6 {
		t.Fatalf("processes %v", pids)
	}
	if err := p.Clear(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !bytes.Contains(stat, []byte(") Z ")) {
			t.Errorf("alive: %s", stat)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.Dir, p.Run+".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if !other.has(stranger.Process.Pid) {
		t.Error("the process of another run is gone")
	}
	if err := errors.Join(other.Kill(), other.Remove(), p.Clear(), Place{}.Clear()); err != nil {
		t.Error(err)
	}
}

// TestNoControlGroup: where groups cannot be made, there is an error, and nothing is left.
func TestNoControlGroup(t *testing.T) {
	dir := t.TempDir()
	if g, err := PlaceOf(dir, "uid", 1).Make(10); err == nil {
		t.Errorf("a group in an ordinary folder: %+v", g)
	}
	if err := try(dir); err == nil {
		t.Error("an ordinary folder is suitable")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if p := PlaceOf("", "uid", 1); p != (Place{}) {
		t.Errorf("a place in no folder: %+v", p)
	}
}

// TestKillsItsMembersAlone: the number of a process of another group, which a member may have had, is not killed.
func TestKillsItsMembersAlone(t *testing.T) {
	p := place(t)
	g, err := p.Make(100)
	if err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	g.killAll([]int{stranger.Process.Pid, 1 << 30})
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger is gone: %v", err)
	}
	_ = stranger.Process.Kill()
	if state, err := stranger.Process.Wait(); err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%v, %v", state, err)
	}
	if err := errors.Join(g.Kill(), g.Remove()); err != nil {
		t.Error(err)
	}
}

// TestUnified: in version 2 a process begins in its group, and the whole group is ended, below a group with processes
// (threaded) and below one without. It needs no controller, so it runs where version 1 has that of processes.
func TestUnified(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	dirs := candidates(string(mounts), "0::/\n")
	if len(dirs) == 0 {
		t.Skip("version 2 of control groups is not mounted")
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	group, _ := groupOf(string(own), "")
	move := func(dir string) error { return write(dir, "cgroup.procs", strconv.Itoa(os.Getpid())) }
	for name, threaded := range map[string]bool{"domain": false, "threaded": true} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // the test moves itself
			base, err := os.MkdirTemp(dirs[0], "platform-test-*") //nolint:usetesting // a control group
			if err != nil {
				t.Skipf("no group can be made here: %v", err)
			}
			defer func() {
				if err := errors.Join(move(filepath.Join(dirs[0], group)), os.Remove(base)); err != nil {
					t.Error(err)
				}
			}()
			g := &Group{dir: filepath.Join(base, "program")}
			if err := os.Mkdir(g.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if threaded {
				if err := errors.Join(move(base), write(g.dir, "cgroup.type", name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.open(); err != nil {
				t.Fatal(err)
			}
			cmd, err := add(t, g, "sh", "-c", "(setsid env -i sleep 1000 &); (setsid env -i sleep 1000 &); sleep 1000")
			if err != nil || !g.has(cmd.Process.Pid) {
				t.Fatalf("the leader is not in its group: %v", err)
			}
			pids := waitFor(t, g, 4)
			if err := errors.Join(g.Kill(), g.Remove()); err != nil {
				t.Error(err)
			}
			for _, pid := range pids {
				if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !bytes.Contains(stat, []byte(") Z ")) {
					t.Errorf("alive: %s", stat)
				}
			}
		})
	}
}

// waitFor returns the members of a group as soon as it has so many.
func waitFor(t *testing.T, g *Group, n int) []int {
	t.Helper()
	var pids []int
	kit.Await(t, fmt.Sprintf("the group has %d members", n), func() bool {
		var err error
		if pids, err = g.members(); err != nil {
			t.Fatal(err)
		}
		return len(pids) >= n
	})
	return pids
}

// TestProbesOfKilledServers: a group that a server made to try out whether it can, and did not remove, goes after a while.
func TestProbesOfKilledServers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"platform-probe.1", "platform-probe.2", "platform-run"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "platform-probe.2", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	left := func() string {
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		return strings.Join(names, " ")
	}
	for _, name := range []string{"platform-probe.1", "platform-probe.2", "platform-run"} {
		if err := os.Chtimes(filepath.Join(dir, name), made, made); err != nil {
			t.Fatal(err)
		}
	}
	if removeProbes(dir, made); left() != "platform-probe.1 platform-probe.2 platform-run" {
		t.Errorf("a new one was removed: %s", left())
	}
	if removeProbes(dir, made.Add(time.Second)); left() != "platform-probe.2 platform-run" {
		t.Errorf("left: %s", left())
	}
}
