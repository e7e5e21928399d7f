// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/durable"
)

// partial is the suffix of the name of an incomplete file.
const partial = ".partial"

// Check reads a backup to its end and returns its manifest if the backup is complete and unchanged.
func Check(ctx context.Context, r io.Reader) (*Manifest, error) {
	return Read(ctx, r, func(File, io.Reader) error { return nil })
}

// Copy copies a backup and checks it as Check does. The copy is a valid backup only if Copy returns no error.
func Copy(ctx context.Context, w io.Writer, r io.Reader) (*Manifest, error) {
	tee := io.TeeReader(r, w)
	m, err := Check(ctx, tee)
	if err != nil {
		return nil, err
	}
	// A tar is padded after its end.
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, &reader{ctx, tee}, make([]byte, copyBuffer)); err != nil {
		return nil, fmt.Errorf("backup: read the end: %w", err)
	}
	return m, nil
}

// Save copies a backup to a file. The file appears under its name only when it is complete, checked and on
// disk. An existing file is replaced only with force; otherwise the error is os.ErrExist.
func Save(ctx context.Context, path string, r io.Reader, force bool) (_ *Manifest, err error) {
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("backup: %s: %w", path, os.ErrExist)
		}
		mode |= os.O_EXCL // the file may belong to another command that is running
	}
	f, err := os.OpenFile(path+partial, mode, filePerm)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	closed := false
	defer func() {
		if err == nil {
			return
		}
		if !closed {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, os.Remove(f.Name()))
	}()
	m, err := Copy(ctx, f, r)
	if err != nil {
		return nil, err
	}
	closed = true
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return m, durable.SyncFolder(filepath.Dir(path))
}
