// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/runspec"
)

// StandBy waits for the assignment of a worker that was started before there was a run for it. When it returns true, the process
// is as if it had been started for the run. It returns false if there is no run, because the process that started it has ended
// or no longer needs it.
func StandBy(stdin *os.File) (assigned bool, err error) {
	a, err := runspec.ReadAssignment(stdin)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	log, err := os.OpenFile(a.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return false, fmt.Errorf("run log: %w", err)
	}
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if err := unix.Dup3(int(log.Fd()), int(f.Fd()), 0); err != nil {
			return false, fmt.Errorf("run log: %w", err)
		}
	}
	if err := log.Close(); err != nil {
		return false, fmt.Errorf("run log: %w", err)
	}
	for name, value := range a.Env {
		if err := os.Setenv(name, value); err != nil {
			return false, fmt.Errorf("assignment: %s: %w", name, err)
		}
	}
	if err := os.Unsetenv(runspec.EnvStandby); err != nil {
		return false, fmt.Errorf("assignment: %w", err)
	}
	if err := os.Chdir(a.Dir); err != nil { // also shows to which run the process belongs
		return false, fmt.Errorf("run folder: %w", err)
	}
	return true, nil
}
