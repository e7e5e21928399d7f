// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
