// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout writes the tree of a commit into a folder, as files alone: no file of git's own is among them, and nothing in
// the tree is interpreted.
//
// # What is refused
//
// Names that no file can have or that would be read as git's own folder (".git" in any case, and what other systems take for it) refuse
// the whole tree, as git does. So do names that appear twice, folders nested too deep, and more files or bytes than the limits.
// Every file is created, never opened, below an open folder (os.Root), so a link in the tree leads no write anywhere.
//
// # What becomes of links and submodules
//
// A link whose target is within the tree is a link. One that leads out of it becomes a file with the target as its text, as git writes
// links where it makes none (core.symlinks=false), and is counted. The folder of a submodule is empty: its repository is another one.
package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/platform-ai/platform/pkg/workspace/filename"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

const (
	// maxLink is the longest target of a link, in bytes.
	maxLink = 4096
)

// ErrRefused is in the chain of the error for a tree that is not written as it is.
var ErrRefused = errors.New("the repository's tree is refused")

// Limits bound what is written: files, folders and links together, and the bytes in them.
type Limits struct {
	Entries, Bytes int64
}

// Result counts what was written.
type Result struct {
	// Files counts files and links, and Bytes what is in them.
	Files, Bytes int64
	// Plain counts the links that became files.
	Plain int64
	// Submodules counts the empty folders of submodules.
	Submodules int64
}

// Write writes the content of a folder of a commit into an existing folder.
func Write(ctx context.Context, from repository.Entry, into *os.Root, limits Limits) (Result, error) {
	w := writer{limits: limits}
	err := w.folder(ctx, from, into, "", 0)
	return w.Result, err
}

type writer struct {
	Result
	entries int64
	limits  Limits
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

func (w *writer) folder(ctx context.Context, from repository.Entry, into *os.Root, at string, depth int) error {
	if depth > filename.MaxDepth {
		return refuse("folders are nested more than %d deep", filename.MaxDepth)
	}
	entries, err := from.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if why := filename.Bad(e.Name); why != "" {
			return refuse("%q %s", path.Join(at, e.Name), why)
		}
		if err := w.entry(ctx, e, into, path.Join(at, e.Name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) entry(ctx context.Context, e repository.Entry, into *os.Root, at string, depth int) error {
	if w.entries++; w.entries > w.limits.Entries {
		return refuse("more than %d files, folders and links", w.limits.Entries)
	}
	var err error
	switch e.Kind {
	case repository.Folder, repository.Submodule:
		err = w.makeFolder(ctx, e, into, at, depth)
	case repository.Link:
		err = w.link(e, into, at)
	case repository.File:
		err = w.file(e, into, at, 0o644)
	case repository.Executable:
		err = w.file(e, into, at, 0o755)
	}
	if errors.Is(err, fs.ErrExist) {
		return refuse("%q is there twice", at)
	}
	return err
}

func (w *writer) makeFolder(ctx context.Context, e repository.Entry, into *os.Root, at string, depth int) error {
	if err := into.Mkdir(e.Name, 0o755); err != nil {
		return err
	}
	if e.Kind == repository.Submodule {
		w.Submodules++
		return nil
	}
	below, err := into.OpenRoot(e.Name)
	if err != nil {
		return err
	}
	defer func() { _ = below.Close() }()
	return w.folder(ctx, e, below, at, depth+1)
}

// open counts a file or link and returns its content.
func (w *writer) open(e repository.Entry, at string) (io.ReadCloser, int64, error) {
	r, size, err := e.Open()
	if err != nil {
		return nil, 0, err
	}
	w.Files++
	if w.Bytes += size; w.Bytes > w.limits.Bytes {
		return nil, 0, errors.Join(refuse("more than %d bytes in files; %q has %d", w.limits.Bytes, at, size), r.Close())
	}
	return r, size, nil
}

func (w *writer) file(e repository.Entry, into *os.Root, at string, mode fs.FileMode) error {
	r, size, err := w.open(e, at)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	n, err := create(into, e.Name, mode, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%q has other than the %d bytes that were announced", at, size)
	}
	return err
}

// create writes a new file.
func create(into *os.Root, name string, mode fs.FileMode, content io.Reader) (int64, error) {
	f, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, content)
	return n, errors.Join(err, f.Close())
}

func (w *writer) link(e repository.Entry, into *os.Root, at string) error {
	r, size, err := w.open(e, at)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if size > maxLink {
		return refuse("the target of the link %q has %d bytes", at, size)
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxLink))
	if err != nil {
		return fmt.Errorf("link %q: %w", at, err)
	}
	if target := string(raw); within(at, target) {
		return into.Symlink(target, e.Name)
	}
	w.Plain++
	_, err = create(into, e.Name, 0o644, bytes.NewReader(raw))
	return err
}

// within reports whether a link at a path of the tree leads to a place in the tree, by the names alone: links on the way are links
// of the tree, which lead into it as well, but may lead higher than their name says. So a target may go up only at its beginning,
// and not above the top.
func within(at, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
		return false
	}
	up := strings.Count(at, "/")
	down := false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if up--; up < 0 || down {
				return false
			}
		default:
			if strings.EqualFold(part, ".git") {
				return false
			}
			down = true
		}
	}
	return true
}
