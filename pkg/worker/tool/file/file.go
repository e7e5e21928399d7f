// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package file provides the tools file_read and file_write. They can access only the run's
// working folder and the temporary folder. They resolve links first, compare the result with
// the roots, and then open the file through os.Root, so that a link that is replaced in between
// cannot lead outside.
package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

// ReadBuiltin is the tool file_read.
var ReadBuiltin = toolkit.Tool{Of: builtin.FileRead, New: func(g toolkit.Given) (tool.Tool, error) {
	roots, err := rootsOf(g)
	return Read(roots), err
}}

// WriteBuiltin is the tool file_write.
var WriteBuiltin = toolkit.Tool{Of: builtin.FileWrite, New: func(g toolkit.Given) (tool.Tool, error) {
	roots, err := rootsOf(g)
	return Write(roots, g.ArtifactsDir), err
}}

func rootsOf(g toolkit.Given) (*Roots, error) {
	more := []string{g.TempDir}
	if g.ArtifactsDir != "" {
		more = append(more, g.ArtifactsDir)
	}
	roots, err := NewRoots(g.WorkDir, more...)
	if err != nil {
		return nil, &tool.RefusedError{Reason: v1alpha1.ReasonWorkerMisconfigured, Err: err}
	}
	return roots, nil
}

// Roots are the folders that the tools may access.
type Roots struct {
	// dirs are resolved and absolute; the first is the base of relative paths.
	dirs []string
}

// NewRoots resolves the folders; all must exist. The first one is the base of
// relative paths.
func NewRoots(workDir string, more ...string) (*Roots, error) {
	r := &Roots{}
	for _, d := range append([]string{workDir}, more...) {
		abs, err := filepath.Abs(d)
		if err != nil {
			return nil, err
		}
		resolved, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return nil, fmt.Errorf("root of file tools: %w", err)
		}
		r.dirs = append(r.dirs, resolved)
	}
	return r, nil
}

// place is a path inside of a root.
type place struct {
	root string
	// rel is the path below root, with all links resolved.
	rel string
}

func (p place) String() string { return filepath.Join(p.root, p.rel) }

// locate resolves a path, which need not exist yet, to a place.
func (r *Roots) locate(path string) (place, error) {
	if strings.ContainsRune(path, 0) {
		return place{}, tool.InvalidArguments("the path holds a NUL character")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dirs[0], path)
	}
	resolved, err := resolve(filepath.Clean(path))
	if err != nil {
		return place{}, describe(err, path)
	}
	for _, root := range r.dirs {
		if rel, err := filepath.Rel(root, resolved); err == nil && filepath.IsLocal(rel) {
			return place{root, rel}, nil
		}
	}
	return place{}, tool.Errorf(tool.TypePermissionDenied, "%s is outside of the folders that files may be in", path).
		Suggest("use a path below %s", strings.Join(r.dirs, " or "))
}

// resolve follows the links of the longest part of path that exists.
func resolve(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
		// Creating a file would follow a dangling link to an unknown target.
		return "", &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return "", err
	}
	resolved, err = resolve(parent)
	return filepath.Join(resolved, filepath.Base(path)), err
}

// describe turns an error of the file system into one for the model.
func describe(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return tool.Errorf(tool.TypeNotFound, "%s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return tool.Errorf(tool.TypePermissionDenied, "%s is not accessible", path)
	}
	reason := err
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		reason = pe.Err
	}
	return tool.Errorf(tool.TypeUnavailable, "%s: %v", path, reason)
}
