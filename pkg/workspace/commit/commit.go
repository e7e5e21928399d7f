// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commit makes a commit of a delta, without the repository: the delta has the folders of the commit that the run began with
// along the changed paths, and their names are the hashes of their content. The same delta, message and time give the same commit, so
// a publication that was interrupted can be done again. What a policy refuses is refused here, before anything leaves the machine.
package commit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
)

// ErrUnfit is in the chain of the error for a delta that does not belong to the commit, or that its objects contradict.
var ErrUnfit = errors.New("the delta does not fit the commit that the run began with")

// Author is who the commits of runs are by.
func Author() gitobject.Person {
	return gitobject.Person{Name: "platform", Email: "noreply@platform.ai"}
}

// Built is a commit with the objects that a repository which has its parent lacks.
type Built struct {
	// Commit and Tree are their names.
	Commit, Tree string
	// Objects are the commit, its new folders and the new files, sorted by name.
	Objects []gitobject.Object
}

// Build makes the commit of a delta whose parent is the given commit.
func Build(d *delta.Delta, parent string, p workspace.Policy, message string, at time.Time) (*Built, error) {
	if d.Commit != parent {
		return nil, fmt.Errorf("%w: it names %s", ErrUnfit, d.Commit)
	}
	if err := check(p, d); err != nil {
		return nil, err
	}
	top, ok := gitobject.TreeOf(d.Objects[parent])
	if !ok {
		return nil, fmt.Errorf("%w: the commit is missing", ErrUnfit)
	}
	b := &builder{d: d, made: map[string]gitobject.Object{}}
	changes := map[string]delta.Change{}
	for _, c := range d.Changes {
		changes[c.Path] = c
	}
	tree, err := b.folder(top, "", grouped(d.Changes))
	if err != nil {
		return nil, err
	}
	if tree == "" { // everything was removed
		empty, _ := gitobject.FormatTree(nil)
		tree = b.make(empty)
	}
	built := &Built{Tree: tree, Commit: b.make(gitobject.FormatCommit(tree, parent, Author(), at, message))}
	for _, name := range slices.Sorted(maps.Keys(b.made)) {
		built.Objects = append(built.Objects, b.made[name])
	}
	return built, nil
}

type builder struct {
	d    *delta.Delta
	made map[string]gitobject.Object
}

// make adds an object to the commit and returns its name.
func (b *builder) make(o gitobject.Object) string {
	name := o.Name()
	b.made[name] = o
	return name
}

// folderChanges are the changes of a folder by the name of what changes: files, and folders with what changes below.
type folderChanges struct {
	files   map[string]delta.Change
	folders map[string]*folderChanges
}

func grouped(changes []delta.Change) *folderChanges {
	top := &folderChanges{files: map[string]delta.Change{}, folders: map[string]*folderChanges{}}
	for _, c := range changes {
		at := top
		dir, name := path.Split(c.Path)
		for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
			if part == "" {
				continue
			}
			if at.folders[part] == nil {
				at.folders[part] = &folderChanges{files: map[string]delta.Change{}, folders: map[string]*folderChanges{}}
			}
			at = at.folders[part]
		}
		at.files[name] = c
	}
	return top
}

// folder returns the name of the folder that the changes make of one of the commit, whose name is empty for a new one. The name is
// empty if nothing is left in it.
func (b *builder) folder(base, at string, changes *folderChanges) (string, error) {
	entries, err := b.entries(base, at)
	if err != nil {
		return "", err
	}
	if err := b.files(entries, changes, true); err != nil { // first, because a folder may take the place of a file
		return "", err
	}
	for name, below := range changes.folders {
		var inner string
		switch e, there := entries[name]; {
		case there && e.Mode == gitobject.ModeFolder:
			inner = e.ID
		case there:
			return "", fmt.Errorf("%w: %q is a file", ErrUnfit, path.Join(at, name))
		}
		id, err := b.folder(inner, path.Join(at, name), below)
		if err != nil {
			return "", err
		}
		if delete(entries, name); id != "" {
			entries[name] = gitobject.Entry{Mode: gitobject.ModeFolder, Name: name, ID: id}
		}
	}
	if err := b.files(entries, changes, false); err != nil { // last, because a file may take the place of a folder
		return "", err
	}
	if len(entries) == 0 {
		return "", nil
	}
	tree, err := gitobject.FormatTree(slices.Collect(maps.Values(entries)))
	if err != nil {
		return "", err
	}
	return b.make(tree), nil
}

// entries returns what is in a folder of the commit, by name.
func (b *builder) entries(base, at string) (map[string]gitobject.Entry, error) {
	entries := map[string]gitobject.Entry{}
	if base == "" {
		return entries, nil
	}
	o, ok := b.d.Objects[base]
	if !ok || o.Kind != gitobject.Tree {
		return nil, fmt.Errorf("%w: folder %q is missing", ErrUnfit, at)
	}
	list, err := gitobject.ParseTree(o.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: folder %q: %w", ErrUnfit, at, err)
	}
	for _, e := range list {
		if _, twice := entries[e.Name]; twice {
			return nil, fmt.Errorf("%w: %q is there twice", ErrUnfit, path.Join(at, e.Name))
		}
		entries[e.Name] = e
	}
	return entries, nil
}

// files makes those changes of files that remove them, or the others.
func (b *builder) files(entries map[string]gitobject.Entry, changes *folderChanges, removed bool) error {
	for name, c := range changes.files {
		if (c.Is == (delta.Side{})) == removed {
			if err := b.file(entries, name, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// file makes one change among the entries of a folder, which must be what the change says it was.
func (b *builder) file(entries map[string]gitobject.Entry, name string, c delta.Change) error {
	e, there := entries[name]
	if there != (c.Was != (delta.Side{})) || there && (sameMode(e.Mode) != sameMode(c.Was.Mode) || e.ID != c.Was.ID) {
		return fmt.Errorf("%w: %q was something else", ErrUnfit, c.Path)
	}
	if delete(entries, name); c.Is == (delta.Side{}) {
		return nil
	}
	entries[name] = gitobject.Entry{Mode: c.Is.Mode, Name: name, ID: c.Is.ID}
	b.made[c.Is.ID] = b.d.Objects[c.Is.ID]
	return nil
}

// sameMode returns the mode that git writes today for one of a file: in old repositories the group could write.
func sameMode(mode string) string {
	if mode == "100664" {
		return gitobject.ModeFile
	}
	return mode
}
