// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// WriteResult is the result of file_write.
type WriteResult struct {
	Path string `json:"path"`
	// Size is the size of the whole file afterwards, in bytes.
	Size int64  `json:"size"`
	Mode string `json:"mode"`
	// Created is set if the file did not exist before.
	Created bool `json:"created"`
}

const (
	modeWrite  = "write"
	modeAppend = "append"
)

// Write returns the tool file_write. The tool's description tells the model that files in
// artifactsDir are kept after the run. artifactsDir is empty if there is no such folder.
func Write(roots *Roots, artifactsDir string) tool.Tool {
	d := builtin.FileWrite.Definition()
	if artifactsDir != "" {
		d.Description += " Files in " + artifactsDir + " are kept as artifacts of the task."
	}
	return tool.New(d,
		func(_ context.Context, a builtin.WriteArguments) (any, error) { return roots.write(a) })
}

func (r *Roots) write(a builtin.WriteArguments) (*WriteResult, error) {
	at, err := r.locate(a.Path)
	if err != nil {
		return nil, err
	}
	if a.CreateDirs == nil || *a.CreateDirs {
		if err := makeDirs(at); err != nil {
			return nil, describe(err, a.Path)
		}
	}
	if a.Mode == "" {
		a.Mode = modeWrite
	}
	f, created, err := openForWrite(at)
	if err != nil {
		return nil, describe(err, a.Path)
	}
	defer func() { _ = f.Close() }()
	if _, err := regularSize(f, a.Path); err != nil {
		return nil, err
	}
	size, err := put(f, a)
	if err != nil {
		return nil, describe(err, a.Path)
	}
	return &WriteResult{Path: at.String(), Size: size, Mode: a.Mode, Created: created}, nil
}

// put writes the content and returns the file's size.
func put(f *os.File, a builtin.WriteArguments) (size int64, err error) {
	offset := int64(0)
	if a.Mode == modeAppend {
		if offset, err = f.Seek(0, io.SeekEnd); err != nil {
			return 0, err
		}
	} else if err := f.Truncate(0); err != nil {
		return 0, err
	}
	n, err := f.WriteAt([]byte(a.Content), offset)
	if err != nil {
		return 0, err
	}
	return offset + int64(n), f.Close()
}

// openForWrite opens or creates the file, and reports which it did. It does not change the
// content, so that the caller can first check that it is a regular file.
func openForWrite(at place) (f *os.File, created bool, err error) {
	f, err = open(at, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return f, true, err
	}
	f, err = open(at, os.O_RDWR|syscall.O_NONBLOCK)
	return f, false, err
}

func makeDirs(at place) error {
	dir := filepath.Dir(at.rel)
	if dir == "." {
		return nil
	}
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return root.MkdirAll(dir, 0o755)
}

// WriteText replaces the content of a text file, which need not exist.
func (r *Roots) WriteText(path, text string) error {
	_, err := r.write(builtin.WriteArguments{Path: path, Content: text})
	return err
}
