// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/workspace/changes"
	"github.com/platform-ai/platform/pkg/workspace/checkout"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/repository"
	"github.com/platform-ai/platform/test/githost"
)

// workspace is a checkout of a commit, with the commit's objects.
type workspace struct {
	objects *repository.Objects
	commit  string
	subPath string
	dir     string
}

func checkedOut(t *testing.T, h *githost.Host, name, commit, subPath string) workspace {
	t.Helper()
	session, err := repository.Remote{URL: h.Location(name), Transport: http.DefaultTransport}.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := session.Fetch(t.Context(), repository.Source{Commit: commit}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = objects.Close() })
	w := workspace{objects: objects, commit: commit, subPath: subPath, dir: t.TempDir()}
	top, err := objects.Root(subPath)
	if err != nil {
		t.Fatal(err)
	}
	into, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = into.Close() }()
	if _, err := checkout.Write(t.Context(), top, into, checkout.Limits{Entries: 1000, Bytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w workspace) freeze(t *testing.T) (*delta.Delta, error) {
	t.Helper()
	dir, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	return changes.Freeze(t.Context(), w.objects, w.commit, w.subPath, dir, 1000)
}

// again returns the delta as it is read after it was written.
func again(t *testing.T, d *delta.Delta) *delta.Delta {
	t.Helper()
	var file bytes.Buffer
	if err := d.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := delta.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// run runs a shell script in the workspace.
func (w workspace) run(t *testing.T, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func shown(d *delta.Delta) string {
	var lines []string
	for _, c := range d.Changes {
		how := "M"
		switch {
		case c.Was == (delta.Side{}):
			how = "A"
		case c.Is == (delta.Side{}):
			how = "D"
		case c.Was.Mode != c.Is.Mode:
			how = "T"
		}
		lines = append(lines, how+" "+c.Path)
	}
	return strings.Join(lines, "\n")
}

// TestFreeze: a delta has what git would commit.
func TestFreeze(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	commit := h.Commit(t, "r", "main", map[string]string{
		"README.md": "hello\n", "run.sh": githost.Executable + "echo\n", "docs/a.md": "a\n", "docs/deep/b.md": "b\n", "old/x": "x", "old/y/z": "z", "link": githost.Link + "README.md", "out": githost.Link + "/etc/passwd",
		".gitignore": "*.log\nbuild/\n/docs/only\n", "kept.log": "tracked although ignored\n", "build/tracked": "1", "caf\xe9": "latin",
	})
	for name, tc := range map[string]struct {
		subPath, script, want string
	}{
		"nothing":                 {"", "true", ""},
		"touched":                 {"", "touch README.md; cat README.md > x; mv x README.md; chmod 664 README.md", ""},
		"changed":                 {"", "echo more >> README.md; echo new > docs/new.md", "M README.md\nA docs/new.md"},
		"removed":                 {"", "rm -r old docs/a.md", "D docs/a.md\nD old/x\nD old/y/z"},
		"modes":                   {"", "chmod +x README.md; chmod -x run.sh", "T README.md\nT run.sh"},
		"links":                   {"", "ln -sf docs/a.md link; ln -s ../outside docs/l", "A docs/l\nM link"},
		"link becomes a file":     {"", "rm link; echo text > link", "T link"},
		"link out, changed":       {"", "echo text > out", "T out"},
		"file becomes a folder":   {"", "rm README.md; mkdir README.md; echo x > README.md/x", "D README.md\nA README.md/x"},
		"folder becomes a file":   {"", "rm -r docs; echo x > docs", "A docs\nD docs/a.md\nD docs/deep/b.md"},
		"ignored":                 {"", "echo x > a.log; mkdir -p build/out sub; echo x > build/out/y; echo x > sub/b.log; echo x > docs/only; echo y >> kept.log; echo 2 > build/tracked", "M build/tracked\nM kept.log"},
		"ignored no more":         {"", "printf '!important.log\\n' > docs/.gitignore; echo x > docs/important.log; echo x > docs/other.log", "A docs/.gitignore\nA docs/important.log"},
		"rules that are removed":  {"", "rm .gitignore; echo x > a.log", "D .gitignore\nA a.log"},
		"folder of git":           {"", "git init -q .; mkdir n; git init -q n; echo x > n/f", "A n/f"},
		"sockets and pipes":       {"", "mkfifo p; rm README.md; mkfifo README.md", "D README.md"},
		"empty folders":           {"", "mkdir -p e/f; rm docs/deep/b.md", "D docs/deep/b.md"},
		"names":                   {"", "echo x > 'a b'; echo x > \"$(printf 'n\\303\\244')\"; echo x > \"$(printf 'tab\\t\"')\"; rm \"$(printf 'caf\\351')\"; echo x > \"$(printf '\\377')\"", "A a b\nD caf\xe9\nA n\u00e4\nA tab\t\"\nA \xff"},
		"folder of a repository":  {"docs", "echo x > new; rm a.md; echo x > only; echo x > z.log; mkdir build; echo x > build/y", "D docs/a.md\nA docs/new"},
		"binary and large, empty": {"", "head -c 100000 /dev/zero > zeros; : > empty; head -c 3000000 /dev/zero | tr '\\0' 'a' > large", "A empty\nA large\nA zeros"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := checkedOut(t, h, "r", commit, tc.subPath)
			w.run(t, tc.script)
			d, err := w.freeze(t)
			if err != nil {
				t.Fatal(err)
			}
			d = again(t, d)
			if got := shown(d); got != tc.want {
				t.Errorf("changes:\n%s\nwant:\n%s", got, tc.want)
			}
			tree := applies(t, h, w, d)
			if strings.Contains(tc.script, "git init") || strings.Contains(tc.script, "mkfifo") || strings.Contains(tc.script, "> out") || tc.subPath != "" {
				return // git takes a repository for a submodule and a link that leads out for a link, and refuses pipes
			}
			clone := filepath.Join(t.TempDir(), "clone")
			git(t, "", "clone", "-q", h.Location("r"), clone)
			workspace{dir: clone}.run(t, tc.script)
			git(t, "", "-C", clone, "add", "-A")
			if want := git(t, "", "-C", clone, "write-tree"); tree != want {
				t.Errorf("tree %s, but git add makes %s", tree, want)
			}
		})
	}
}

// git runs the git program without configuration.
func git(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s\n%s", strings.Join(args, " "), err, out, input)
	}
	return strings.TrimSpace(string(out))
}

// applies returns the tree that the changes make, and checks that git makes the same one of the diff.
func applies(t *testing.T, h *githost.Host, w workspace, d *delta.Delta) (tree string) {
	t.Helper()
	var diff bytes.Buffer
	if left, err := changes.Diff(d, w.objects, &diff, 100<<20); err != nil || left != 0 {
		t.Fatalf("%d changes are not shown: %v", left, err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git(t, "", "clone", "-q", h.Location("r"), clone)
	if diff.Len() > 0 {
		git(t, diff.String(), "-C", clone, "apply", "--index", "-")
	}
	applied := git(t, "", "-C", clone, "write-tree")
	git(t, "", "-C", clone, "read-tree", w.commit)
	for _, c := range d.Changes {
		if c.Is == (delta.Side{}) {
			git(t, "", "-C", clone, "update-index", "--force-remove", c.Path)
		}
	}
	for _, c := range d.Changes {
		if c.Is != (delta.Side{}) {
			id := git(t, string(d.Objects[c.Is.ID].Data), "-C", clone, "hash-object", "-w", "--stdin")
			git(t, "", "-C", clone, "update-index", "--add", "--cacheinfo", fmt.Sprintf("%s,%s,%s", c.Is.Mode, id, c.Path))
		}
	}
	if tree = git(t, "", "-C", clone, "write-tree"); applied != tree {
		t.Errorf("git apply makes the tree %s, the changes themselves %s:\n%s", applied, tree, diff.String())
	}
	return tree
}

// TestFreezeRefuses: what no repository can have is refused with its path, and nothing else of this machine is in the text.
func TestFreezeRefuses(t *testing.T) {
	t.Parallel()
	h := githost.New(t, "")
	h.Create(t, "r")
	commit := h.CommitTree(t, "r", "main", h.Tree(t, "r", githost.Entry{Mode: "100644", Name: "a", Content: "a"}, githost.Entry{Mode: "160000", Name: "sub", ID: strings.Repeat("a", 40)}))
	for name, tc := range map[string]struct {
		script string
		want   error
		says   string
	}{
		"git's folder by another name": {"mkdir .GIT; echo x > .GIT/config", changes.ErrRefused, `".GIT" is, or is taken`},
		"for NTFS":                     {"mkdir n; echo x > 'n/git~1'", changes.ErrRefused, `"n/git~1" is`},
		"files of a submodule":         {"echo x > sub/x", changes.ErrRefused, `"sub" is the folder of a submodule`},
		"depth":                        {"p=.; for i in $(seq 300); do p=$p/d; done; mkdir -p $p; echo x > $p/f", changes.ErrRefused, "nested more than"},
		"too many":                     {"for i in $(seq 1001); do echo > f$i; done", changes.ErrRefused, "too many files"},
		"too large":                    {"truncate -s 70000000 big", delta.ErrTooLarge, `"big" has 70000000`},
		"too large together":           {"truncate -s 40000000 big; (cat big; echo) > big2", delta.ErrTooLarge, "more than 67108864 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := checkedOut(t, h, "r", commit, "")
			w.run(t, tc.script)
			if d, err := w.freeze(t); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), w.dir) {
				t.Errorf("%v, %v; want %q", d, err, tc.says)
			}
		})
	}
	w := checkedOut(t, h, "r", commit, "")
	if d, err := w.freeze(t); err != nil || len(d.Changes) > 0 {
		t.Errorf("the folder of a submodule as it was made: %v, %v", d, err)
	}
}
