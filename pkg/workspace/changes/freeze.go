// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes compares the workspace of a run with the commit that it began with: Freeze gives the delta, Diff shows it as a patch.
//
// What counts as a change is what git would commit: files that the commit has and that differ or are gone, and others unless a
// .gitignore of the workspace says otherwise. Content is compared byte for byte: attributes and filters of the repository act neither
// here nor when the workspace was made. A .git folder that the run made, sockets, pipes and devices are left out.
package changes

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/filename"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/pkg/workspace/ignore"
	"github.com/platform-ai/platform/pkg/workspace/repository"
)

// maxIgnore is the size up to which a .gitignore is read, in bytes.
const maxIgnore = 512 << 10

// ErrRefused is in the chain of the error for a workspace of which no commit can be made.
var ErrRefused = errors.New("the workspace cannot be published")

// Freeze compares a workspace with the commit that it was made from. Nothing may write to it meanwhile; if something does, the delta
// has each file as it was at one moment. The workspace may have so many files and folders, and below each ignored folder none is
// looked at.
func Freeze(ctx context.Context, from *repository.Objects, commit, subPath string, workspace *os.Root, maxEntries int64) (*delta.Delta, error) {
	f := &freezer{ctx: ctx, from: from, found: &delta.Delta{Header: delta.Header{Version: delta.Version, Commit: commit, SubPath: strings.Trim(subPath, "/"), Changes: []delta.Change{}}, Objects: map[string]gitobject.Object{}}, entries: maxEntries, left: delta.MaxObjects}
	top, err := from.Root(subPath)
	if err != nil {
		return nil, err
	}
	rules, err := f.rulesAbove()
	if err != nil {
		return nil, err
	}
	if err := f.folder(workspace, f.found.SubPath, top, rules, false, strings.Count(f.found.SubPath, "/")); err != nil {
		return nil, err
	}
	slices.SortFunc(f.found.Changes, func(a, b delta.Change) int { return strings.Compare(a.Path, b.Path) })
	return f.found, f.base()
}

type freezer struct {
	ctx   context.Context //nolint:containedctx // of one call of Freeze
	from  *repository.Objects
	found *delta.Delta
	// entries is how many files and folders may still be looked at, and left how many bytes the objects may still have.
	entries, left int64
}

// rulesAbove returns the rules of the folders above the workspace, as the commit has them.
func (f *freezer) rulesAbove() (rules *ignore.Rules, err error) {
	at := ""
	for name := range strings.SplitSeq(f.found.SubPath, "/") {
		if f.found.SubPath == "" {
			return nil, nil //nolint:nilnil // no rules are rules
		}
		folder, err := f.from.Root(at)
		if err != nil {
			return nil, err
		}
		entries, err := folder.Entries()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Name == ".gitignore" && (e.Kind == repository.File || e.Kind == repository.Executable) {
				o, err := f.from.Object(e.ID())
				if err != nil {
					return nil, err
				}
				if len(o.Data) <= maxIgnore {
					rules = rules.In(at, o.Data)
				}
			}
		}
		at = path.Join(at, name)
	}
	return rules, nil
}

// folder compares a folder of the workspace with that of the commit, which is the zero Entry for a new one.
func (f *freezer) folder(dir *os.Root, at string, base repository.Entry, rules *ignore.Rules, ignored bool, depth int) error {
	if depth > filename.MaxDepth {
		return fmt.Errorf("%w: folders are nested more than %d deep", ErrRefused, filename.MaxDepth)
	}
	had, err := entriesOf(base)
	if err != nil {
		return err
	}
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("%w: folder %q cannot be read: %w", ErrRefused, at, withoutPath(err))
	}
	if rules, err = below(dir, at, rules, list); err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range list {
		if err := f.ctx.Err(); err != nil {
			return context.Cause(f.ctx)
		}
		if f.entries--; f.entries < 0 {
			return fmt.Errorf("%w: it has too many files and folders", ErrRefused)
		}
		was, tracked := had[e.Name()]
		name := path.Join(at, e.Name())
		skip, counts := leftOut(e, name, tracked, rules, ignored)
		if !counts {
			continue
		}
		there[e.Name()] = true
		if why := filename.Bad(e.Name()); why != "" {
			return fmt.Errorf("%w: %q %s", ErrRefused, name, why)
		}
		if err := f.entry(dir, name, e, was, rules, skip, depth); err != nil {
			return err
		}
	}
	for name, was := range had {
		if !there[name] {
			if err := f.gone(path.Join(at, name), was); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftOut reports whether what is below a file or folder is ignored unless the commit has it, and whether it counts at all.
func leftOut(e fs.DirEntry, name string, tracked bool, rules *ignore.Rules, ignored bool) (skip, counts bool) {
	kind := e.Type()
	if !kind.IsDir() && !kind.IsRegular() && kind != fs.ModeSymlink || e.Name() == ".git" {
		return false, false
	}
	if !ignored && (!tracked || kind.IsDir()) {
		ignored = rules.Ignored(name, kind.IsDir())
	}
	return ignored, tracked || !ignored
}

// below returns the rules that hold in a folder.
func below(dir *os.Root, at string, rules *ignore.Rules, list []fs.DirEntry) (*ignore.Rules, error) {
	for _, e := range list {
		if e.Name() != ".gitignore" || !e.Type().IsRegular() {
			continue
		}
		file, info, err := open(dir, e.Name())
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrRefused, path.Join(at, e.Name()), err)
		}
		content, err := io.ReadAll(io.LimitReader(file, maxIgnore))
		_ = file.Close()
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrRefused, path.Join(at, e.Name()), withoutPath(err))
		}
		if info.Size() <= maxIgnore {
			rules = rules.In(at, content)
		}
	}
	return rules, nil
}

func (f *freezer) entry(dir *os.Root, name string, e fs.DirEntry, was repository.Entry, rules *ignore.Rules, ignored bool, depth int) error {
	if e.IsDir() {
		if was.Kind != repository.Folder && was.Name != "" && was.Kind != repository.Submodule {
			if err := f.gone(name, was); err != nil {
				return err
			}
			was = repository.Entry{}
		}
		inner, err := dir.OpenRoot(e.Name())
		if err != nil {
			return fmt.Errorf("%w: folder %q: %w", ErrRefused, name, withoutPath(err))
		}
		defer func() { _ = inner.Close() }()
		if was.Kind == repository.Submodule {
			return f.submodule(inner, name)
		}
		return f.folder(inner, name, was, rules, ignored, depth+1)
	}
	if was.Kind == repository.Folder && was.Name != "" {
		if err := f.gone(name, was); err != nil {
			return err
		}
		was = repository.Entry{}
	}
	is, data, err := f.file(dir, name, e, was)
	if err != nil || data == nil {
		return err
	}
	return f.changed(name, was, is, data)
}

// submodule refuses files in the folder of a submodule, which belong to another repository.
func (f *freezer) submodule(dir *os.Root, name string) error {
	list, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return fmt.Errorf("%w: folder %q: %w", ErrRefused, name, withoutPath(err))
	}
	if len(list) > 0 {
		return fmt.Errorf("%w: %q is the folder of a submodule, and there are files in it", ErrRefused, name)
	}
	return nil
}

// open opens a file of a folder, and nothing else: neither a link nor a pipe.
func open(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no longer a file")
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// withoutPath returns the cause of an error, without the path on this machine.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// file returns a file or link as it is now; data is nil if it is as the commit has it.
func (f *freezer) file(dir *os.Root, name string, e fs.DirEntry, was repository.Entry) (is delta.Side, data []byte, err error) {
	if e.Type() == fs.ModeSymlink {
		target, err := dir.Readlink(e.Name())
		if err != nil {
			return is, nil, fmt.Errorf("%w: link %q: %w", ErrRefused, name, withoutPath(err))
		}
		is = delta.Side{Mode: gitobject.ModeLink, ID: gitobject.Object{Kind: gitobject.Blob, Data: []byte(target)}.Name()}
		if is == sideOf(was) {
			return is, nil, nil
		}
		return is, []byte(target), nil
	}
	file, info, err := open(dir, e.Name())
	if err != nil {
		return is, nil, fmt.Errorf("%w: %q: %w", ErrRefused, name, err)
	}
	defer func() { _ = file.Close() }()
	is = delta.Side{Mode: gitobject.ModeFile}
	if info.Mode()&0o100 != 0 {
		is.Mode = gitobject.ModeExecutable
	}
	if was.Name != "" {
		hash := gitobject.NewHash(gitobject.Blob, info.Size())
		if _, err := io.Copy(hash, file); err != nil {
			return is, nil, fmt.Errorf("%w: %q: %w", ErrRefused, name, withoutPath(err))
		}
		is.ID = hex.EncodeToString(hash.Sum(nil))
		// A link that leads out of the repository is a file of the workspace whose text is its target.
		if is == sideOf(was) || was.Kind == repository.Link && is.Mode == gitobject.ModeFile && is.ID == was.ID() {
			return is, nil, nil
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return is, nil, fmt.Errorf("%w: %q: %w", ErrRefused, name, withoutPath(err))
		}
	}
	if info.Size() > f.left {
		return is, nil, fmt.Errorf("%w: more than %d bytes in changed files; %q has %d", delta.ErrTooLarge, delta.MaxObjects, name, info.Size())
	}
	data, err = io.ReadAll(io.LimitReader(file, f.left+1))
	if err != nil {
		return is, nil, fmt.Errorf("%w: %q: %w", ErrRefused, name, withoutPath(err))
	}
	if data == nil {
		data = []byte{}
	}
	is.ID = gitobject.Object{Kind: gitobject.Blob, Data: data}.Name()
	if is == sideOf(was) { // it was changed back meanwhile
		return is, nil, nil
	}
	return is, data, nil
}

// sideOf returns what the commit has.
func sideOf(e repository.Entry) delta.Side {
	if e.Name == "" {
		return delta.Side{}
	}
	return delta.Side{Mode: e.Mode(), ID: e.ID()}
}

func entriesOf(base repository.Entry) (map[string]repository.Entry, error) {
	had := map[string]repository.Entry{}
	if base.Kind != repository.Folder {
		return had, nil
	}
	list, err := base.Entries()
	for _, e := range list {
		had[e.Name] = e
	}
	return had, err
}

func (f *freezer) changed(name string, was repository.Entry, is delta.Side, data []byte) error {
	if len(f.found.Changes) >= delta.MaxChanges {
		return fmt.Errorf("%w: more than %d changed files", delta.ErrTooLarge, delta.MaxChanges)
	}
	f.found.Changes = append(f.found.Changes, delta.Change{Path: name, Was: sideOf(was), Is: is})
	if is == (delta.Side{}) {
		return nil
	}
	return f.keep(is.ID, gitobject.Object{Kind: gitobject.Blob, Data: data})
}

func (f *freezer) keep(id string, o gitobject.Object) error {
	if _, known := f.found.Objects[id]; known {
		return nil
	}
	if f.left -= int64(len(o.Data)); f.left < 0 {
		return fmt.Errorf("%w: more than %d bytes", delta.ErrTooLarge, delta.MaxObjects)
	}
	f.found.Objects[id] = o
	return nil
}

// gone notes that a file of the commit, or all files of a folder, are not there any more.
func (f *freezer) gone(name string, was repository.Entry) error {
	if was.Kind != repository.Folder {
		return f.changed(name, was, delta.Side{}, nil)
	}
	list, err := was.Entries()
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := f.gone(path.Join(name, e.Name), e); err != nil {
			return err
		}
	}
	return nil
}

// base adds the commit, and its folders along the changed paths.
func (f *freezer) base() error {
	if len(f.found.Changes) == 0 {
		return nil
	}
	if err := f.keepFrom(f.found.Commit); err != nil {
		return err
	}
	top, err := f.from.Root("")
	if err != nil {
		return err
	}
	if err := f.keepFrom(top.ID()); err != nil {
		return err
	}
	had, err := entriesOf(top)
	if err != nil {
		return err
	}
	known := map[string]map[string]repository.Entry{".": had}
	for _, c := range f.found.Changes {
		if err := f.along(known, path.Dir(c.Path)); err != nil {
			return err
		}
		if err := f.before(c); err != nil {
			return err
		}
	}
	return nil
}

// maxBefore is the size up to which the former content of a changed file is kept, in bytes.
const maxBefore = 1 << 20

// before adds the former content of a file that still exists, if there is room: it tells what of a file is new.
func (f *freezer) before(c delta.Change) error {
	if c.Is == (delta.Side{}) || c.Was.Mode != gitobject.ModeFile && c.Was.Mode != gitobject.ModeExecutable {
		return nil
	}
	o, err := f.from.Object(c.Was.ID)
	if err != nil {
		return err
	}
	if size := int64(len(o.Data)); size > maxBefore || size > f.left {
		return nil
	}
	return f.keep(c.Was.ID, o)
}

// along adds the folders of the commit that lead to a path, as far as there are any. known has what is in those that were added.
func (f *freezer) along(known map[string]map[string]repository.Entry, dir string) error {
	if _, ok := known[dir]; ok {
		return nil
	}
	above := path.Dir(dir)
	if err := f.along(known, above); err != nil {
		return err
	}
	e := known[above][path.Base(dir)]
	had, err := entriesOf(e)
	if err != nil {
		return err
	}
	known[dir] = had
	if e.Kind != repository.Folder {
		return nil
	}
	return f.keepFrom(e.ID())
}

// keepFrom adds an object of the commit.
func (f *freezer) keepFrom(id string) error {
	o, err := f.from.Object(id)
	if err != nil {
		return err
	}
	return f.keep(id, o)
}
