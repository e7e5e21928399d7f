// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/workspace"
)

// Install copies the running program into a folder as runspec.ProgramName, from where a container of another image can start it, and
// beside it the program that works on repositories, if it is next to the running one.
func Install(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	if err := install(self, filepath.Join(dir, runspec.ProgramName)); err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	beside := filepath.Join(filepath.Dir(self), workspace.ProgramName)
	if err := install(beside, filepath.Join(dir, workspace.ProgramName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install %s: %w", workspace.ProgramName, err)
	}
	return nil
}

// install copies a program.
func install(program, path string) (err error) {
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}
