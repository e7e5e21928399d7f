// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// envHang has this test binary start processes and wait to be killed.
const envHang = "KIT_TEST_HANG"

// TestKilledBinaryLeavesNothing kills a test binary, which then cannot clean up: the programs that it has started end, with what they
// started themselves, and so do the runs of a server.
func TestKilledBinaryLeavesNothing(t *testing.T) {
	if os.Getenv(envHang) != "" {
		hang(t)
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	binary.Env = append(os.Environ(), envHang+"=true", "TMPDIR="+t.TempDir())
	out, err := binary.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := binary.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for lines := bufio.NewScanner(out); len(pids) == 0 && lines.Scan(); {
		if said, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			pids = strings.Fields(said)
		}
	}
	if err := binary.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = binary.Wait() // it was killed
	if len(pids) != 3 {
		t.Fatalf("processes %v", pids)
	}
	for _, pid := range pids {
		Await(t, "process "+pid+" ends", func() bool { return !lives(pid) })
	}
}

// lives reports whether a process has not ended. A zombie has no environment, so it counts as ended.
func lives(pid string) bool {
	env, _ := os.ReadFile(filepath.Join("/proc", pid, "environ"))
	return len(env) > 0
}

func hang(t *testing.T) {
	shell := Start(t, nil, "bash", "-c", "sleep 1000 & echo child $!; wait")
	child := strings.Fields(shell.Await(t, "child "))[1]
	dir := t.TempDir()
	EndRunsAfter(t, dir)
	run := exec.Command("sleep", "1000")
	run.Env = []string{"PLATFORM_WORK_DIR=" + filepath.Join(dir, "runs", "uid", "1", "work")}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("started %d %s %d\n", shell.Pid(), child, run.Process.Pid)
	_ = run.Wait() // until it is killed
}

// TestEndRuns: all processes of the runs of a folder end, and no others.
func TestEndRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(folder string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{"PLATFORM_WORK_DIR=" + filepath.Join(folder, "runs", "uid", "1", "work")}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	mine, other := start(dir), start(dir+"-too")
	EndRuns(dir)
	if err := mine.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the run ended with %v", err)
	}
	if !lives(strconv.Itoa(other.Process.Pid)) {
		t.Error("the run of another folder has ended")
	}
	EndRuns(dir + "-too")
	_ = other.Wait() // it was killed
}
