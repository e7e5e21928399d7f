// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

// Kind is what an entry of a tree is.
type Kind int

// Kinds of entries.
const (
	File Kind = iota
	Executable
	Link
	Folder
	// Submodule is the name of a commit of another repository. It has no content here.
	Submodule
)

// Entry is one entry of a tree, as the repository has it: nothing about its name has been checked.
type Entry struct {
	Name string
	Kind Kind
	id   plumbing.Hash
	o    *Objects
}

// Tree returns the name of the commit's tree.
func (o *Objects) Tree() string { return o.tree.String() }

// Root returns the entry of the folder at a path of the commit's tree; an empty path is all of it.
func (o *Objects) Root(path string) (Entry, error) {
	at := Entry{Kind: Folder, id: o.tree, o: o}
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		below, err := at.Entries()
		if err != nil {
			return Entry{}, err
		}
		found := false
		for _, e := range below {
			if found = e.Name == name && e.Kind == Folder; found {
				at = e
				break
			}
		}
		if !found {
			return Entry{}, fmt.Errorf("%w: the commit has no folder %q", ErrUnusable, path)
		}
	}
	return at, nil
}

// Entries returns what is in a folder.
func (e Entry) Entries() ([]Entry, error) {
	t, err := object.GetTree(e.o.store, e.id)
	if err != nil {
		return nil, fmt.Errorf("%w: tree %s: %w", ErrUnusable, e.id, err)
	}
	list := make([]Entry, 0, len(t.Entries))
	for _, of := range t.Entries {
		below := Entry{Name: of.Name, id: of.Hash, o: e.o}
		switch of.Mode {
		case filemode.Regular, filemode.Deprecated:
			below.Kind = File
		case filemode.Executable:
			below.Kind = Executable
		case filemode.Symlink:
			below.Kind = Link
		case filemode.Dir:
			below.Kind = Folder
		case filemode.Submodule:
			below.Kind = Submodule
		default:
			return nil, fmt.Errorf("%w: tree %s: an entry has the mode %s, which no git makes", ErrUnusable, e.id, of.Mode)
		}
		list = append(list, below)
	}
	return list, nil
}

// ID returns the name of the object, in hexadecimal digits.
func (e Entry) ID() string { return e.id.String() }

// Mode returns the mode of the entry, as git writes it.
func (e Entry) Mode() string {
	switch e.Kind {
	case Executable:
		return gitobject.ModeExecutable
	case Link:
		return gitobject.ModeLink
	case Folder:
		return gitobject.ModeFolder
	case Submodule:
		return gitobject.ModeSubmodule
	default:
		return gitobject.ModeFile
	}
}

// Object returns an object of the repository with its content.
func (o *Objects) Object(id string) (gitobject.Object, error) {
	e, err := o.store.EncodedObject(plumbing.AnyObject, plumbing.NewHash(id))
	if err != nil {
		return gitobject.Object{}, fmt.Errorf("%w: object %s: %w", ErrUnusable, id, err)
	}
	r, err := e.Reader()
	if err != nil {
		return gitobject.Object{}, fmt.Errorf("%w: object %s: %w", ErrUnusable, id, err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		return gitobject.Object{}, fmt.Errorf("%w: object %s: %w", ErrUnusable, id, err)
	}
	return gitobject.Object{Kind: e.Type().String(), Data: data}, nil
}

// Open returns the content of a file, or the target of a link, and its size.
func (e Entry) Open() (io.ReadCloser, int64, error) {
	b, err := e.o.store.EncodedObject(plumbing.BlobObject, e.id)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: blob %s: %w", ErrUnusable, e.id, err)
	}
	r, err := b.Reader()
	if err != nil {
		return nil, 0, fmt.Errorf("%w: blob %s: %w", ErrUnusable, e.id, err)
	}
	return r, b.Size(), nil
}
