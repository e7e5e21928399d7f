// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// workOf is in the environment of every process of a run of a data folder: the beginning of the run's working folder.
func workOf(dataDir string) string {
	return "PLATFORM_WORK_DIR=" + filepath.Join(dataDir, "runs") + string(filepath.Separator)
}

// EndRunsAfter has the runs of a data folder end with the test, and also if the test binary is killed.
func EndRunsAfter(t testing.TB, dataDir string) {
	t.Helper()
	ifKilled(t, workOf(dataDir))
	t.Cleanup(func() { EndRuns(dataDir) })
}

// EndRuns kills what is left of the runs of a data folder, and returns when nothing is. Runs outlive their
// server by design, but a test must leave nothing behind. They are recognised by
// their working folder, which every process of a run has in its environment.
func EndRuns(dataDir string) {
	mark := []byte(workOf(dataDir))
	for killAll(mark) {
		time.Sleep(look) // nobody is notified when a process that is no child has ended
	}
}

// killAll kills the processes that have a mark in their environment, and reports whether there were any: one of them may have started
// another one before its end.
func killAll(mark []byte) (killed bool) {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false // not on Linux, so they cannot be found
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", p.Name(), "environ"))
		if err == nil && bytes.Contains(env, mark) && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed = true
		}
	}
	return killed
}
