// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transfer carries a workspace to a runtime that works on it elsewhere, and back what changed there. What an earlier task changed
// is made in a workspace in the same way. Pack makes the archive that
// is sent: a delta without changes that has all objects of the commit below a folder. Apply makes the changes of a delta that came back
// in the checkout of the same commit, so that everything that follows is the same as for a run on this machine.
//
// What came back is another party's claim. It is applied only if it fits the commit that was sent: each file was what the delta says,
// and no changed path leads through a file or a link. Links are made last, so that no file is written through a new one.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/commit"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// Pack writes the archive of a workspace.
func Pack(ctx context.Context, o workspace.PackOrder) (*workspace.Packed, error) {
	from, err := repository.Open(o.Baseline, o.Commit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	p := packer{from: from, left: delta.MaxObjects, d: &delta.Delta{
		Header:  delta.Header{Version: delta.Version, Commit: o.Commit, SubPath: strings.Trim(o.SubPath, "/"), Changes: []delta.Change{}},
		Objects: map[string]gitobject.Object{},
	}}
	if err := p.all(ctx); err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := p.d.Write(&file); err != nil {
		return nil, err
	}
	return &workspace.Packed{Bytes: int64(file.Len())}, os.WriteFile(o.File, file.Bytes(), 0o600)
}

type packer struct {
	from *repository.Objects
	d    *delta.Delta
	left int64
}

// all adds the commit, the folders that lead to the workspace, and everything in it.
func (p *packer) all(ctx context.Context) error {
	if err := p.add(p.d.Commit); err != nil {
		return err
	}
	at := ""
	for name := range strings.SplitSeq(p.d.SubPath, "/") {
		if p.d.SubPath == "" {
			break
		}
		above, err := p.from.Root(at)
		if err != nil {
			return err
		}
		if err := p.add(above.ID()); err != nil {
			return err
		}
		at = path.Join(at, name)
	}
	top, err := p.from.Root(p.d.SubPath)
	if err != nil {
		return err
	}
	return p.folder(ctx, top)
}

func (p *packer) folder(ctx context.Context, e repository.Entry) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := p.add(e.ID()); err != nil {
		return err
	}
	list, err := e.Entries()
	if err != nil {
		return err
	}
	for _, below := range list {
		switch below.Kind {
		case repository.Submodule: // its files belong to another repository
		case repository.Folder:
			err = p.folder(ctx, below)
		case repository.File, repository.Executable, repository.Link:
			err = p.add(below.ID())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) add(id string) error {
	if _, known := p.d.Objects[id]; known {
		return nil
	}
	o, err := p.from.Object(id)
	if err != nil {
		return err
	}
	if p.left -= int64(len(o.Data)); p.left < 0 {
		return fmt.Errorf("%w: spec.workspace: the files have more than %d bytes, which is as much as is sent to a registered runtime; name a folder of it in spec.workspace.subPath", ErrTooLarge, delta.MaxObjects)
	}
	p.d.Objects[id] = o
	return nil
}

// ErrTooLarge is in the chain of the error for a workspace that is not sent because of its size, and ErrUnfit for a delta that is not
// one of the workspace that was sent.
var (
	ErrTooLarge = errors.New("the workspace is too large")
	ErrUnfit    = errors.New("the changes cannot be made in the workspace")
)

// Apply makes the changes of a delta in a checkout of its commit, in which nothing has changed.
func Apply(ctx context.Context, o workspace.ApplyOrder) (*workspace.Applied, error) {
	file, err := os.Open(o.Delta)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	d, err := delta.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if d.SubPath != strings.Trim(o.SubPath, "/") || d.Commit != o.Commit {
		return nil, fmt.Errorf("%w: it is about folder %q of commit %s", ErrUnfit, d.SubPath, d.Commit)
	}
	if len(d.Changes) == 0 {
		return &workspace.Applied{}, nil
	}
	// Making a commit of it compares each change with what was there before.
	if _, err := commit.Build(d, o.Commit, workspace.Policy{}, "", time.Unix(0, 0)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	into, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = into.Close() }()
	return &workspace.Applied{Files: len(d.Changes)}, apply(ctx, d, into)
}

// apply removes what is gone or changes, and writes what is there afterwards: files first, then links.
func apply(ctx context.Context, d *delta.Delta, into *os.Root) error {
	within := func(c delta.Change) string { return strings.TrimPrefix(strings.TrimPrefix(c.Path, d.SubPath), "/") }
	for _, c := range d.Changes {
		if c.Was == (delta.Side{}) {
			continue
		}
		if err := remove(into, within(c)); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrUnfit, c.Path, cause(err))
		}
	}
	for _, links := range []bool{false, true} {
		for _, c := range d.Changes {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if c.Is == (delta.Side{}) || (c.Is.Mode == gitobject.ModeLink) != links {
				continue
			}
			if err := write(into, within(c), c.Is.Mode, d.Objects[c.Is.ID].Data); err != nil {
				return fmt.Errorf("%w: %q: %w", ErrUnfit, c.Path, cause(err))
			}
		}
	}
	return nil
}

// remove removes a file, and the folders in which nothing is left, as git does.
func remove(into *os.Root, name string) error {
	if err := into.Remove(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if into.Remove(dir) != nil { // there is more in it
			return nil //nolint:nilerr // it stays
		}
	}
	return nil
}

func write(into *os.Root, name, mode string, content []byte) error {
	if dir := path.Dir(name); dir != "." {
		if err := into.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if mode == gitobject.ModeLink {
		return into.Symlink(string(content), name)
	}
	perm := fs.FileMode(0o644)
	if mode == gitobject.ModeExecutable {
		perm = 0o755
	}
	file, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// cause returns what was wrong, without the path on this machine.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
