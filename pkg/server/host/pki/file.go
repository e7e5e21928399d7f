// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const private = 0o600

// readFile returns nil for a file that does not exist. It restricts the file's
// mode to the owner, because others may be able to read the file, for example
// after a careless copy of the directory.
func readFile(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("pki file: %w", err)
	}
	if err := os.Chmod(path, private); err != nil {
		return nil, fmt.Errorf("pki file: %w", err)
	}
	return b, nil
}

// writeFile replaces a file atomically and durably: after a crash it holds
// either the old or the new content.
func writeFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("pki file %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pki file %s: %w", path, err), f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
