// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// ReadResult is the result of file_read.
type ReadResult struct {
	Content string `json:"content"`
	Path    string `json:"path"`
	// Size is the size of the whole file in bytes.
	Size int64 `json:"size"`
	// Truncated is set if the file continues after Content.
	Truncated bool `json:"truncated"`
	// NextOffset is where to continue if Truncated is set.
	NextOffset int64 `json:"nextOffset,omitempty"`
}

const (
	defaultReadLimit = 64 << 10
	maxReadLimit     = 1 << 20
)

// Read returns the tool file_read.
func Read(roots *Roots) tool.Tool {
	return tool.New(builtin.FileRead.Definition(),
		func(_ context.Context, a builtin.ReadArguments) (any, error) { return roots.read(a) })
}

func (r *Roots) read(a builtin.ReadArguments) (*ReadResult, error) {
	at, err := r.locate(a.Path)
	if err != nil {
		return nil, err
	}
	limit := int64(defaultReadLimit)
	if a.Limit != nil {
		limit = min(*a.Limit, maxReadLimit)
	}
	// Without O_NONBLOCK, opening a named pipe would block until there is a writer.
	f, err := open(at, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return nil, describe(err, a.Path)
	}
	defer func() { _ = f.Close() }()
	size, err := regularSize(f, a.Path)
	if err != nil {
		return nil, err
	}
	content := make([]byte, limit)
	n, err := f.ReadAt(content, a.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, describe(err, a.Path)
	}
	content = content[:n]
	if bytes.IndexByte(content, 0) >= 0 {
		return nil, tool.InvalidArguments("%s is not a text file", a.Path).Suggest("use code_exec to look into binary files")
	}
	if a.Offset+int64(n) < size {
		content = clip.Whole(content)
	}
	end := a.Offset + int64(len(content))
	out := &ReadResult{Content: string(content), Path: at.String(), Size: size, Truncated: end < size}
	if out.Truncated {
		out.NextOffset = end
	}
	return out, nil
}

// open opens a file below its root; every part of the path stays inside.
func open(at place, flags int) (*os.File, error) {
	root, err := os.OpenRoot(at.root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.OpenFile(at.rel, flags, 0o644)
}

func regularSize(f *os.File, path string) (int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, describe(err, path)
	case info.IsDir():
		return 0, tool.InvalidArguments("%s is a folder", path).Suggest("use code_exec with ls to list it")
	case !info.Mode().IsRegular():
		return 0, tool.InvalidArguments("%s is not a regular file", path)
	}
	return info.Size(), nil
}

// ReadText returns a whole text file of at most limit bytes.
func (r *Roots) ReadText(path string, limit int64) (string, error) {
	at, err := r.locate(path)
	if err != nil {
		return "", err
	}
	f, err := open(at, os.O_RDONLY|syscall.O_NONBLOCK)
	if err != nil {
		return "", describe(err, path)
	}
	defer func() { _ = f.Close() }()
	size, err := regularSize(f, path)
	if err == nil && size > limit {
		err = tool.InvalidArguments("%s is larger than %d bytes", path, limit)
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return string(text), describe(err, path)
}
