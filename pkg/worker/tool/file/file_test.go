// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/tool"
)

// setup returns a catalogue with both tools, its working folder, its temporary
// folder and a folder that is off limits with a file named secret.
func setup(t *testing.T) (c *tool.Catalogue, work, temp, outside string) {
	t.Helper()
	work, temp, outside = t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := NewRoots(work, temp)
	if err != nil {
		t.Fatal(err)
	}
	c, err = tool.NewCatalogue(Read(roots), Write(roots, ""))
	if err != nil {
		t.Fatal(err)
	}
	return c, work, temp, outside
}

// call runs a tool and decodes the data of its result into out.
func call(t *testing.T, c *tool.Catalogue, name string, arguments map[string]any, out any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Call(t.Context(), name, string(raw))
	envelope := struct{ Data any }{out}
	if err := json.Unmarshal([]byte(r.Text), &envelope); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWriteThenRead(t *testing.T) {
	c, work, temp, _ := setup(t)
	var w WriteResult
	if r := call(t, c, "file_write", map[string]any{"path": "a/b/c.txt", "content": "one\n"}, &w); r.Failed() {
		t.Fatal(r.Text)
	}
	path := filepath.Join(work, "a/b/c.txt")
	if diff := cmp.Diff(WriteResult{Path: path, Size: 4, Mode: "write", Created: true}, w); diff != "" {
		t.Error(diff)
	}
	w = WriteResult{}
	call(t, c, "file_write", map[string]any{"path": path, "content": "two\n", "mode": "append"}, &w)
	if diff := cmp.Diff(WriteResult{Path: path, Size: 8, Mode: "append"}, w); diff != "" {
		t.Error(diff)
	}
	var got ReadResult
	call(t, c, "file_read", map[string]any{"path": "a/../a/b/c.txt"}, &got)
	if diff := cmp.Diff(ReadResult{Content: "one\ntwo\n", Path: path, Size: 8}, got); diff != "" {
		t.Error(diff)
	}
	call(t, c, "file_write", map[string]any{"path": path, "content": "3"}, &w)
	call(t, c, "file_read", map[string]any{"path": path}, &got)
	if got.Content != "3" || got.Size != 1 {
		t.Errorf("%+v", got)
	}
	if r := call(t, c, "file_write", map[string]any{"path": filepath.Join(temp, "x"), "content": ""}, &w); r.Failed() {
		t.Error(r.Text)
	}
}

func TestReadInParts(t *testing.T) {
	c, work, _, _ := setup(t)
	text := strings.Repeat("añ€😀", 20)
	if err := os.WriteFile(filepath.Join(work, "f"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	offset := int64(0)
	for range 1000 {
		var got ReadResult
		if r := call(t, c, "file_read", map[string]any{"path": "f", "offset": offset, "limit": 7}, &got); r.Failed() {
			t.Fatal(r.Text)
		}
		all.WriteString(got.Content)
		if !got.Truncated {
			break
		}
		offset = got.NextOffset
	}
	if all.String() != text {
		t.Errorf("got %q", all.String())
	}
	var got ReadResult
	if call(t, c, "file_read", map[string]any{"path": "f", "offset": 10000}, &got); got.Content != "" || got.Truncated {
		t.Errorf("%+v", got)
	}
}

// TestStaysInside tries every way in which a path could leave the roots.
func TestStaysInside(t *testing.T) {
	c, work, _, outside := setup(t)
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(work, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("dir", outside)
	link("file", filepath.Join(outside, "secret"))
	link("dangling", filepath.Join(outside, "new"))
	link("chain", "dir")
	link("up", "../")
	rel, err := filepath.Rel(work, filepath.Join(outside, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(outside, "secret"), rel, "file", "dir/secret", "chain/secret", "dangling", "dir/new", "dir/sub/new",
		"up/" + filepath.Base(outside) + "/secret", "/etc/passwd", "/proc/self/environ", "/proc/self/root/etc/passwd", work + "/../x",
	} {
		var got ReadResult
		if r := call(t, c, "file_read", map[string]any{"path": path}, &got); !r.Failed() || got.Content != "" || strings.Contains(r.Text, "hidden") {
			t.Errorf("read of %s: %s", path, r.Text)
		}
		if r := call(t, c, "file_write", map[string]any{"path": path, "content": "x"}, &WriteResult{}); r.ErrorType != tool.TypePermissionDenied {
			t.Errorf("write to %s: %s", path, r.Text)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside now has %v, %v", entries, err)
	}
	if raw, err := os.ReadFile(filepath.Join(outside, "secret")); string(raw) != "hidden" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestLinksInside: a link that stays inside, even into the other root, is fine.
func TestLinksInside(t *testing.T) {
	c, work, temp, _ := setup(t)
	if err := os.Symlink(temp, filepath.Join(work, "t")); err != nil {
		t.Fatal(err)
	}
	if r := call(t, c, "file_write", map[string]any{"path": "t/f", "content": "x"}, &WriteResult{}); r.Failed() {
		t.Error(r.Text)
	}
	if raw, err := os.ReadFile(filepath.Join(temp, "f")); string(raw) != "x" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestReadLimitIsLowered: a limit above the highest counts as the highest, and the answer says where to continue.
func TestReadLimitIsLowered(t *testing.T) {
	c, work, _, _ := setup(t)
	const most = 1 << 20
	if err := os.WriteFile(filepath.Join(work, "long"), bytes.Repeat([]byte("x"), most+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{most, most + 1, 5_000_000, math.MaxInt64} {
		var got ReadResult
		if r := call(t, c, "file_read", map[string]any{"path": "long", "limit": limit}, &got); len(got.Content) != most || !got.Truncated || got.NextOffset != most {
			t.Errorf("limit %d: %d bytes, %.100s", limit, len(got.Content), r.Text)
		}
	}
}

func TestWhatIsNotAFile(t *testing.T) {
	c, work, _, _ := setup(t)
	if err := syscall.Mkfifo(filepath.Join(work, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "binary"), []byte("\x7fELF\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		tool string
		args map[string]any
		want tool.ErrorType
	}{
		{"file_read", map[string]any{"path": "."}, tool.TypeInvalidArguments},
		{"file_read", map[string]any{"path": "pipe"}, tool.TypeInvalidArguments},
		{"file_read", map[string]any{"path": "binary"}, tool.TypeInvalidArguments},
		{"file_read", map[string]any{"path": "absent"}, tool.TypeNotFound},
		{"file_read", map[string]any{"path": "binary/x"}, tool.TypeUnavailable},
		{"file_read", map[string]any{"path": "a\x00b"}, tool.TypeInvalidArguments},
		{"file_read", map[string]any{"path": "binary", "limit": 0}, tool.TypeInvalidArguments},
		{"file_write", map[string]any{"path": "pipe", "content": "x"}, tool.TypeInvalidArguments},
		{"file_write", map[string]any{"path": "no/dir/f", "content": "x", "create_dirs": false}, tool.TypeNotFound},
	}
	for _, tt := range tests {
		if r := call(t, c, tt.tool, tt.args, &struct{}{}); r.ErrorType != tt.want {
			t.Errorf("%s %v: got %s, want %s", tt.tool, tt.args, r.Text, tt.want)
		}
	}
}
