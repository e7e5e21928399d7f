// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/runspec"
)

// Install copies the running program into a folder as runspec.ProgramName, from where a container of another image
// can start it.
func Install(dir string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	from, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	defer func() { _ = from.Close() }()
	path := filepath.Join(dir, runspec.ProgramName)
	to, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("install worker: %w", err)
	}
	return nil
}
