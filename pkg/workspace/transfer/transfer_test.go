// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer_test

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/changes"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/pkg/workspace/repository"
	"github.com/platform-ai/platform/pkg/workspace/transfer"
	"github.com/platform-ai/platform/test/githost"
)

// source is a commit with the folder of its objects.
type source struct {
	dir, commit, subPath string
	objects              *repository.Objects
}

func fetched(t *testing.T, subPath string) source {
	t.Helper()
	h := githost.New(t, "")
	h.Create(t, "shop")
	s := source{dir: t.TempDir(), subPath: subPath}
	s.commit = h.Commit(t, "shop", "main", map[string]string{"a/one": "1\n", "a/two": "2\n", "a/b/three": "3\n", "other/x": "x\n"})
	session, err := repository.Remote{URL: h.Location("shop"), Transport: http.DefaultTransport}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.objects, err = session.Fetch(t.Context(), repository.Source{Commit: s.commit}, s.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.objects.Close() })
	return s
}

// checkOut writes the files of the workspace into a new folder.
func (s source) checkOut(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = into.Close() }()
	top, err := s.objects.Root(s.subPath)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkout.Write(t.Context(), top, into, checkout.Limits{Entries: 100, Bytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// freeze returns what differs in a folder from the commit.
func (s source) freeze(t *testing.T, dir string) *delta.Delta {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	d, err := changes.Freeze(t.Context(), s.objects, s.commit, s.subPath, root, 100)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// file writes a delta.
func file(t *testing.T, d *delta.Delta) string {
	t.Helper()
	var raw bytes.Buffer
	if err := d.Write(&raw); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "delta")
	if err := os.WriteFile(name, raw.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPack: the archive has the commit, the folders that lead to the workspace and all that is in it, and nothing else.
func TestPack(t *testing.T) {
	t.Parallel()
	for subPath, want := range map[string]string{"": "1\n 2\n 3\n x\n", "a": "1\n 2\n 3\n", "a/b": "3\n"} {
		s := fetched(t, subPath)
		name := filepath.Join(t.TempDir(), "archive")
		if _, err := transfer.Pack(t.Context(), workspace.PackOrder{Baseline: s.dir, Commit: s.commit, SubPath: subPath, File: name}); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d, err := delta.Read(bytes.NewReader(raw))
		if err != nil || d.Commit != s.commit || d.SubPath != subPath || len(d.Changes) > 0 {
			t.Fatalf("%v, %+v", err, d)
		}
		var blobs []string
		for _, o := range d.Objects {
			if o.Kind == gitobject.Blob {
				blobs = append(blobs, string(o.Data))
			}
		}
		slices.Sort(blobs)
		root, ok := gitobject.TreeOf(d.Objects[s.commit])
		if got := strings.Join(blobs, " "); got != want || !ok || d.Objects[root].Kind != gitobject.Tree {
			t.Errorf("below %q there is %q, want %q", subPath, got, want)
		}
	}
}

// TestApply: what was changed elsewhere is what the workspace differs by afterwards.
func TestApply(t *testing.T) {
	t.Parallel()
	s := fetched(t, "a")
	there, here := s.checkOut(t), s.checkOut(t)
	for _, err := range []error{
		os.WriteFile(filepath.Join(there, "one"), []byte("other\n"), 0o600),
		os.Chmod(filepath.Join(there, "two"), 0o755),
		os.RemoveAll(filepath.Join(there, "b")),
		os.WriteFile(filepath.Join(there, "b"), []byte("a file where a folder was\n"), 0o600),
		os.MkdirAll(filepath.Join(there, "new/deep"), 0o700),
		os.WriteFile(filepath.Join(there, "new/deep/file"), nil, 0o600),
		os.Symlink("../one", filepath.Join(there, "new/link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := s.freeze(t, there)
	applied, err := transfer.Apply(t.Context(), workspace.ApplyOrder{Commit: s.commit, SubPath: "a", Dir: here, Delta: file(t, want)})
	if err != nil || applied.Files != len(want.Changes) {
		t.Fatalf("%v, %+v", err, applied)
	}
	got := s.freeze(t, here)
	if !slices.Equal(got.Changes, want.Changes) || !slices.Equal(slices.Sorted(maps.Keys(got.Objects)), slices.Sorted(maps.Keys(want.Objects))) || len(got.Changes) < 6 {
		t.Errorf("%+v\nwant %+v", got.Changes, want.Changes)
	}
}

// TestApplyRefuses: what does not fit the commit is refused, and nothing is changed.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	s := fetched(t, "a")
	there := s.checkOut(t)
	if err := os.WriteFile(filepath.Join(there, "one"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*delta.Delta){
		"another commit": func(d *delta.Delta) { d.Commit = strings.Repeat("0", 40) },
		"another folder": func(d *delta.Delta) { d.SubPath = "other"; d.Changes[0].Path = "other/one" },
		"another file before": func(d *delta.Delta) {
			d.Changes[0].Was.ID = strings.Repeat("1", 40)
		},
		"a file that was not there": func(d *delta.Delta) { d.Changes[0].Was = delta.Side{} },
		"below a file":              func(d *delta.Delta) { d.Changes[0].Path = "a/two/x"; d.Changes[0].Was = delta.Side{} },
		"without the commit":        func(d *delta.Delta) { delete(d.Objects, d.Commit) },
		"outside":                   func(d *delta.Delta) { d.Changes[0].Path = "a/../../x"; d.Changes[0].Was = delta.Side{} },
		"git's folder":              func(d *delta.Delta) { d.Changes[0].Path = "a/.git/config"; d.Changes[0].Was = delta.Side{} },
	} {
		d, here := s.freeze(t, there), s.checkOut(t)
		change(d)
		_, err := transfer.Apply(t.Context(), workspace.ApplyOrder{Commit: s.commit, SubPath: "a", Dir: here, Delta: file(t, d)})
		if !errors.Is(err, transfer.ErrUnfit) {
			t.Errorf("%s: %v", name, err)
		}
		if left := s.freeze(t, here); len(left.Changes) > 0 {
			t.Errorf("%s: it changed %+v", name, left.Changes)
		}
	}
}
