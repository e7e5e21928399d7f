// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// groups returns the place for control groups of a test.
func groups(t *testing.T) cgroup.Place {
	t.Helper()
	dir, err := cgroup.Find()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	return cgroup.PlaceOf(dir, "program-"+strconv.Itoa(os.Getpid()), 1)
}

// TestOneProcessTooMany: a program in a control group starts as many processes as it may, and the kernel refuses the next
// one with an error that the program sees.
func TestOneProcessTooMany(t *testing.T) {
	for _, most := range []int{5, 40} { // the first is less than the threads of a shim
		dir := t.TempDir()
		var stdout, stderr bytes.Buffer
		line := fmt.Sprintf(`i=1; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo started; sleep 1000 & echo and one more`, most)
		outcome, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", line}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Stdout: &stdout, Stderr: &stderr,
			Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}, Groups: groups(t)}, Limits: sandbox.Limits{Processes: uint64(most)}, Clock: clock.RealClock{},
		})
		if err != nil || outcome.ExitCode == 0 || stdout.String() != "started\n" || !strings.Contains(stderr.String(), "ork") {
			t.Errorf("limit %d: %+v, %v: %q, %q", most, outcome, err, stdout.String(), stderr.String())
		}
	}
}

// TestWithoutFirstThread: a process is ended although its first thread has ended, so that it looks like one that is dead, with a control
// group and without one.
func TestWithoutFirstThread(t *testing.T) {
	const script = `
import ctypes, os, platform, threading, time
def go_on():
    while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z": pass
    print(os.getpid(), flush=True)
    time.sleep(1000)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall(93 if platform.machine() == "aarch64" else 60, 0)
`
	for name, place := range map[string]cgroup.Place{"group": groups(t), "none": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var stdout, stderr bytes.Buffer
			outcome, err := Run(t.Context(), Command{
				Args: []string{"sh", "-c", `mkfifo f; setsid python3 -c "$1" > f & read pid < f; echo "$pid"`, "sh", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir,
				Stdout: &stdout, Stderr: &stderr, Policy: sandbox.Policy{Off: true, Groups: place}, Limits: sandbox.Limits{Processes: 100}, Clock: clock.RealClock{},
			})
			pid, parse := strconv.Atoi(strings.TrimSpace(stdout.String()))
			if err != nil || parse != nil || outcome.ExitCode != 0 {
				t.Fatalf("%+v, %v, %q", outcome, errors.Join(err, parse), stderr.String())
			}
			if p, ok := readProcess(pid); ok && p.threads > 1 {
				t.Errorf("alive: %+v", p)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// TestWithoutPlace: where the folder for control groups is unsuitable, or gone, programs run as if there were none.
func TestWithoutPlace(t *testing.T) {
	for _, place := range []string{"/no/such/folder", t.TempDir(), ""} {
		dir := t.TempDir()
		var stdout bytes.Buffer
		outcome, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", "echo ran; exit 3"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Stdout: &stdout,
			Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}, Groups: cgroup.PlaceOf(place, "x", 1)}, Limits: sandbox.Limits{Processes: 100}, Clock: clock.RealClock{},
		})
		if err != nil || outcome.ExitCode != 3 || stdout.String() != "ran\n" {
			t.Errorf("%s: %+v, %v: %q", place, outcome, err, stdout.String())
		}
	}
}

// workerEnv makes this test program the worker of TestKilledWorker.
const workerEnv = "TEST_WORKER_GROUPS"

// TestKilledWorker: what a program has started is found and ended after the worker was killed, although it has left its
// session, its parent, its folder and its environment.
func TestKilledWorker(t *testing.T) {
	if place := os.Getenv(workerEnv); place != "" {
		_, err := Run(t.Context(), Command{
			Args: []string{"sh", "-c", `(setsid env -i /bin/sh -c 'cd /; echo $$; exec sleep 1000' &); sleep 1000`}, Env: []string{"PATH=" + os.Getenv("PATH")},
			Dir: "/", Stdout: os.Stdout, Sole: true, Clock: clock.RealClock{}, Limits: sandbox.Limits{Processes: 100},
			Policy: sandbox.Policy{Off: true, Groups: cgroup.PlaceOf(filepath.Dir(place), filepath.Base(place), 1)},
		})
		t.Fatal(err)
	}
	p := groups(t)
	place := cgroup.PlaceOf(p.Dir, "killed-"+strconv.Itoa(os.Getpid()), 1)
	worker := exec.Command("/proc/self/exe", "-test.run=^TestKilledWorker$")
	worker.Env = append(os.Environ(), workerEnv+"="+filepath.Join(p.Dir, "killed-"+strconv.Itoa(os.Getpid())))
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	_, err = fmt.Fscan(out, &pid)
	if killErr := worker.Process.Kill(); err != nil || killErr != nil {
		t.Fatal(err, killErr)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	_, _ = worker.Process.Wait()
	if p, ok := readProcess(pid); !ok || p.dead {
		t.Errorf("process %d ended with its worker, so the test shows nothing: %+v", pid, p)
	}
	if err := place.Clear(); err != nil {
		t.Error(err)
	}
	if p, ok := readProcess(pid); ok && !p.dead {
		t.Errorf("alive: %+v", p)
	}
	if left, _ := filepath.Glob(filepath.Join(place.Dir, place.Run+".*")); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}
