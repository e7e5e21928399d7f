// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable writes small files that must survive a crash of the machine: keys, certificates, records of runs.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// private is the mode of the files, of which many hold secrets.
const private fs.FileMode = 0o600

// suffix is that of a file that is not complete. What a crash left of one is replaced by the next write.
const suffix = ".new"

// WriteFile replaces the file at path by one with this content, which only the owner may read. A reader, also after a
// crash of the machine, sees the old content or the new one as a whole. When WriteFile returns nil, the new one is
// durable. A file must not be written by two callers at the same time.
func WriteFile(path string, content []byte) (err error) {
	f, err := os.OpenFile(path+suffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, private)
	if err != nil {
		return err // names the path
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, unlessMissing(os.Remove(path+suffix))))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(private) // an unfinished file that was left may have another mode
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+suffix, path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder makes the names in a folder durable, after a file in it was created, renamed or removed.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
