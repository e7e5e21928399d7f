// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/filename"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/pkg/workspace/ignore"
)

// base is what a workspace began with.
type base struct {
	commit, subPath string
	objects         map[string]gitobject.Object
	root            string                // the tree of the commit
	files           map[string]delta.Side // below subPath, by their paths in the repository
}

// frozen is a delta.
type frozen struct {
	status harness.DeltaStatus
	file   []byte
}

// read reads a file of the workspace. A link that leads out of it is not followed.
func (s *session) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return root.ReadFile(name)
}

func (s *session) write(name string, content []byte) error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return root.WriteFile(name, content, 0o600)
}

// receive takes the workspace.
func (s *session) receive(body []byte) (*operation, error) {
	if s.state() != harness.SessionPreparing {
		return nil, harness.Refuse(harness.Busy, "the session expects no workspace")
	}
	b, err := open(body)
	if s.r.broken("takes-anything") && err != nil {
		b, err = &base{commit: strings.Repeat("0", gitobject.NameLength)}, nil
	}
	if err != nil {
		return nil, harness.Refuse(harness.BadRequest, "the workspace: %v", err)
	}
	if err := s.checkOut(b); err != nil {
		return nil, err
	}
	s.base = b
	return done(http.StatusOK, s.status())
}

// open reads an archive and checks that everything is there.
func open(body []byte) (*base, error) {
	d, err := delta.Read(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	b := &base{commit: d.Commit, subPath: d.SubPath, objects: d.Objects, files: map[string]delta.Side{}}
	root, ok := gitobject.TreeOf(d.Objects[d.Commit])
	if !ok || len(d.Changes) > 0 {
		return nil, fmt.Errorf("it has no commit, or it has changes")
	}
	b.root = root
	at, tree := "", root
	for name := range strings.SplitSeq(d.SubPath, "/") {
		if d.SubPath == "" {
			break
		}
		list, err := b.entries(tree)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(e gitobject.Entry) bool { return e.Name == name && e.Mode == gitobject.ModeFolder })
		if i < 0 {
			return nil, fmt.Errorf("the commit has no folder %q", d.SubPath)
		}
		at, tree = path.Join(at, name), list[i].ID
	}
	return b, b.gather(at, tree, 0)
}

func (b *base) entries(tree string) ([]gitobject.Entry, error) {
	o, ok := b.objects[tree]
	if !ok || o.Kind != gitobject.Tree {
		return nil, fmt.Errorf("the folder %s is missing", tree)
	}
	return gitobject.ParseTree(o.Data)
}

// gather notes the files of a folder.
func (b *base) gather(at, tree string, depth int) error {
	list, err := b.entries(tree)
	if err != nil || depth > filename.MaxDepth {
		return fmt.Errorf("the folder %q cannot be read: %w", at, err)
	}
	for _, e := range list {
		name := path.Join(at, e.Name)
		if why := filename.Bad(e.Name); why != "" {
			return fmt.Errorf("%q %s", name, why)
		}
		switch e.Mode {
		case gitobject.ModeSubmodule: // an empty folder at most
		case gitobject.ModeFolder:
			if err := b.gather(name, e.ID, depth+1); err != nil {
				return err
			}
		default:
			if b.objects[e.ID].Kind != gitobject.Blob {
				return fmt.Errorf("the content of %q is missing", name)
			}
			b.files[name] = delta.Side{Mode: e.Mode, ID: e.ID}
		}
	}
	return nil
}

// checkOut writes the files.
func (s *session) checkOut(b *base) error {
	if s.r.broken("no-files") {
		return nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for name, side := range b.files {
		name = strings.TrimPrefix(strings.TrimPrefix(name, b.subPath), "/")
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		content := b.objects[side.ID].Data
		switch side.Mode {
		case gitobject.ModeLink:
			err = root.Symlink(string(content), name)
		case gitobject.ModeExecutable:
			err = root.WriteFile(name, content, 0o700)
		default:
			err = root.WriteFile(name, content, 0o600)
		}
		if err != nil && !s.r.broken("shared-files") {
			return err
		}
	}
	return nil
}

func (s *session) delta(id string, body []byte) (*operation, error) {
	var spec harness.DeltaSpec
	if err := s.r.decode(body, &spec); err != nil {
		return nil, err
	}
	state := s.state()
	if s.base == nil || state == harness.SessionRunning && !s.r.broken("delta-while-running") {
		return nil, harness.Refuse(harness.Busy, "the session is %s, or has no workspace", state)
	}
	f, err := s.freeze(id)
	if err != nil {
		return nil, err
	}
	if most := min(spec.MaxBytes, *s.r.limits.MaxWorkspaceDeltaBytes); f.status.Bytes > most && !s.r.broken("delta-any-size") {
		return nil, harness.Refuse(harness.TooLarge, "the delta has %d bytes, more than %d", f.status.Bytes, most)
	}
	if s.r.broken("delta-digest") && f.status.Files > 0 {
		f.status.Digest = hexOf(append(slices.Clone(f.file), 0))
	}
	s.deltas[id] = f
	if f.status.Files > 0 && s.spec.Workspace.Intent == harness.IntentWrite {
		s.unfinished = id
	}
	return done(http.StatusOK, f.status)
}

// freeze compares the workspace with what it began with.
func (s *session) freeze(id string) (*frozen, error) {
	d := &delta.Delta{Header: delta.Header{Version: delta.Version, Commit: s.base.commit, SubPath: s.base.subPath, Changes: []delta.Change{}}, Objects: map[string]gitobject.Object{}}
	now := map[string]delta.Side{}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	var rules *ignore.Rules
	if err := s.gather(root, ".", rules, now, d.Objects); err != nil {
		return nil, err
	}
	changed := maps.Clone(now)
	maps.Copy(changed, s.base.files)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		was, is := s.base.files[name], now[name]
		if was != is || s.r.broken("delta-of-nothing") && is == (delta.Side{}) {
			d.Changes = append(d.Changes, delta.Change{Path: name, Was: was, Is: is})
		}
	}
	if s.r.broken("delta-of-nothing") {
		d.Changes = []delta.Change{{Path: path.Join(s.base.subPath, "unchanged"), Is: now[slices.Sorted(maps.Keys(now))[0]]}}
	}
	s.keep(d)
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		return nil, err
	}
	return &frozen{file: file.Bytes(), status: harness.DeltaStatus{ID: id, Commit: d.Commit, Digest: hexOf(file.Bytes()), Bytes: int64(file.Len()), Files: int64(len(d.Changes))}}, nil
}

// keep leaves the objects in a delta that belong there: what changed files contain, and the commit with its folders.
func (s *session) keep(d *delta.Delta) {
	had := d.Objects
	d.Objects = map[string]gitobject.Object{}
	for _, c := range d.Changes {
		if c.Is != (delta.Side{}) {
			d.Objects[c.Is.ID] = had[c.Is.ID]
		}
	}
	if len(d.Changes) == 0 {
		return
	}
	for id, o := range s.base.objects {
		if o.Kind != gitobject.Blob {
			d.Objects[id] = o
		}
	}
}

// gather notes the files of a folder as they are now.
func (s *session) gather(root *os.Root, dir string, rules *ignore.Rules, now map[string]delta.Side, objects map[string]gitobject.Object) error {
	list, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		return err
	}
	if content, err := root.ReadFile(path.Join(dir, ".gitignore")); err == nil {
		rules = rules.In(strings.TrimPrefix(path.Join(s.base.subPath, dir), "."), content)
	}
	for _, e := range list {
		at := path.Join(dir, e.Name())
		name := path.Join(s.base.subPath, at)
		_, tracked := s.base.files[name]
		if e.Name() == ".git" || !tracked && rules.Ignored(name, e.IsDir()) {
			continue
		}
		side := delta.Side{Mode: gitobject.ModeFile}
		var content []byte
		switch {
		case e.IsDir():
			if err := s.gather(root, at, rules, now, objects); err != nil {
				return err
			}
			continue
		case e.Type() == fs.ModeSymlink:
			target, err := root.Readlink(at)
			if err != nil {
				return err
			}
			side.Mode, content = gitobject.ModeLink, []byte(target)
		case e.Type().IsRegular():
			if content, side.Mode, err = contentOf(root, at); err != nil {
				return err
			}
		default:
			continue
		}
		o := gitobject.Object{Kind: gitobject.Blob, Data: content}
		side.ID = o.Name()
		now[name], objects[side.ID] = side, o
	}
	return nil
}

func contentOf(root *os.Root, name string) (content []byte, mode string, err error) {
	file, err := root.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, "", err
	}
	if mode = gitobject.ModeFile; info.Mode()&0o100 != 0 {
		mode = gitobject.ModeExecutable
	}
	content, err = io.ReadAll(io.LimitReader(file, delta.MaxObjects))
	return content, mode, err
}
