// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// EndRuns kills what is left of the runs of a data folder. Runs outlive their
// server by design, but a test must leave nothing behind. They are recognised by
// their working folder, which every process of a run has in its environment.
func EndRuns(dataDir string) {
	mark := []byte("PLATFORM_WORK_DIR=" + filepath.Join(dataDir, "runs") + string(filepath.Separator))
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return // not on Linux, so they cannot be found
	}
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", p.Name(), "environ"))
		if err == nil && bytes.Contains(env, mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}
