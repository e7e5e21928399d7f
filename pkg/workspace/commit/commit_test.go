// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package commit_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/commit"
	"github.com/platform-ai/platform/pkg/workspace/delta"
	"github.com/platform-ai/platform/pkg/workspace/gitobject"
	"github.com/platform-ai/platform/test/corpus"
)

// repo is a repository of the git program.
type repo struct {
	t   *testing.T
	dir string
}

func (r repo) git(input string, args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(input)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// object returns an object of the repository.
func (r repo) object(name string) gitobject.Object {
	r.t.Helper()
	kind := r.git("", "cat-file", "-t", name)
	cmd := exec.CommandContext(context.Background(), "git", "cat-file", kind, name)
	cmd.Dir = r.dir
	data, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return gitobject.Object{Kind: kind, Data: data}
}

// before makes a repository with one commit, and an empty delta that knows all of its objects.
func before(t *testing.T) (repo, *delta.Delta) {
	t.Helper()
	r := repo{t, t.TempDir()}
	r.git("", "init", "-q", "-b", "main")
	for name, content := range map[string]string{"README.md": "hello\n", "a/b/c.txt": "c\n", "a/b.txt": "b\n", "a.txt": "a\n", "a/d/e": "e\n", "config.yml": "token: " + corpus.Canaries()[0].Secrets[0] + "\nport: 1\n"} {
		file := filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r.git("", "add", "-A")
	r.git("", "commit", "-q", "-m", "first")
	d := &delta.Delta{Header: delta.Header{Version: 1, Commit: r.git("", "rev-parse", "HEAD")}, Objects: map[string]gitobject.Object{}}
	for line := range strings.Lines(r.git("", "rev-list", "--objects", "HEAD")) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		d.Objects[name] = r.object(name)
	}
	return r, d
}

// change adds a change to a delta; an empty content removes the file.
func (r repo) change(d *delta.Delta, name, mode, content string) {
	c := delta.Change{Path: name}
	if line := r.git("", "ls-tree", "-r", "HEAD", "--", name); line != "" && !strings.Contains(line, "\n") {
		fields := strings.Fields(line)
		if fields[3] == name {
			c.Was = delta.Side{Mode: fields[0], ID: fields[2]}
		}
	}
	if mode != "" {
		o := gitobject.Object{Kind: gitobject.Blob, Data: []byte(content)}
		c.Is = delta.Side{Mode: mode, ID: o.Name()}
		d.Objects[o.Name()] = o
	}
	d.Changes = append(d.Changes, c)
	slices.SortFunc(d.Changes, func(a, b delta.Change) int { return strings.Compare(a.Path, b.Path) })
}

var at = time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)

// TestBuild: git finds the commit whole, with the tree that it makes of the same changes itself, and it is the same each time.
func TestBuild(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][][3]string{
		"change and add":          {{"README.md", "100644", "more\n"}, {"new/deep/file", "100755", "x"}, {"a/b/link", "120000", "c.txt"}},
		"remove":                  {{"a/b/c.txt", "", ""}, {"README.md", "", ""}},
		"file becomes a folder":   {{"a.txt", "", ""}, {"a.txt/x", "100644", "x"}},
		"folder becomes a file":   {{"a/d/e", "", ""}, {"a/d", "100644", "d"}},
		"everything":              {{"README.md", "", ""}, {"a/b/c.txt", "", ""}, {"a/b.txt", "", ""}, {"a.txt", "", ""}, {"a/d/e", "", ""}, {"config.yml", "", ""}},
		"names that sort strange": {{"a-b", "100644", "1"}, {"a0", "100644", "2"}, {"a/b0", "100644", "3"}, {"a/b-", "100644", "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, d := before(t)
			for _, c := range changes {
				r.change(d, c[0], c[1], c[2])
			}
			built, err := commit.Build(d, d.Commit, workspace.Policy{}, "Do it\n\nwell", at)
			if err != nil {
				t.Fatal(err)
			}
			again, err := commit.Build(d, d.Commit, workspace.Policy{}, "Do it\n\nwell", at)
			if err != nil || again.Commit != built.Commit {
				t.Errorf("the second time it is %v, %v", again, err)
			}
			for _, o := range built.Objects {
				if got := r.git(string(o.Data), "hash-object", "-w", "-t", o.Kind, "--stdin"); got != o.Name() {
					t.Errorf("git names it %s, not %s", got, o.Name())
				}
			}
			r.git("", "fsck", "--strict", built.Commit)
			r.git("", "read-tree", "HEAD")
			for _, c := range d.Changes {
				if c.Is == (delta.Side{}) {
					r.git("", "update-index", "--force-remove", c.Path)
				}
			}
			for _, c := range d.Changes {
				if c.Is != (delta.Side{}) {
					r.git("", "update-index", "--add", "--cacheinfo", c.Is.Mode+","+c.Is.ID+","+c.Path)
				}
			}
			if want := r.git("", "write-tree"); built.Tree != want {
				t.Errorf("tree %s, git makes %s", built.Tree, want)
			}
			if show := r.git("", "log", "-1", "--format=%P %an <%ae> %cI %B", built.Commit); show != d.Commit+" platform <noreply@platform.ai> 2026-11-29T01:02:03+00:00 Do it\n\nwell\n" {
				t.Errorf("commit: %q", show)
			}
		})
	}
}

// TestUnfit: a delta that says something else about the commit than its objects is refused.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r repo, d *delta.Delta) string{
		"other commit": func(_ repo, _ *delta.Delta) string { return strings.Repeat("a", 40) },
		"no commit":    func(_ repo, d *delta.Delta) string { delete(d.Objects, d.Commit); return d.Commit },
		"no folder": func(r repo, d *delta.Delta) string {
			delete(d.Objects, r.git("", "rev-parse", "HEAD:a/b"))
			return d.Commit
		},
		"other content": func(_ repo, d *delta.Delta) string { d.Changes[0].Was.ID = d.Changes[0].Is.ID; return d.Commit },
		"other mode":    func(_ repo, d *delta.Delta) string { d.Changes[0].Was.Mode = "100755"; return d.Commit },
		"was not there": func(_ repo, d *delta.Delta) string { d.Changes[0].Was = delta.Side{}; return d.Commit },
		"was there":     func(_ repo, d *delta.Delta) string { d.Changes[0].Path = "a/b/x"; return d.Commit },
		"below a file": func(_ repo, d *delta.Delta) string {
			d.Changes[0] = delta.Change{Path: "a.txt/x", Is: d.Changes[0].Is}
			return d.Commit
		},
		"a folder is a file": func(_ repo, d *delta.Delta) string {
			d.Changes[0] = delta.Change{Path: "a", Is: d.Changes[0].Is}
			return d.Commit
		},
	} {
		r, d := before(t)
		r.change(d, "a/b/c.txt", "100644", "other")
		if built, err := commit.Build(d, change(r, d), workspace.Policy{}, "m", at); !errors.Is(err, commit.ErrUnfit) {
			t.Errorf("%s: %v, %v", name, built, err)
		}
	}
}

// TestPolicy: each policy refuses what it names, says which files, and allows the rest.
func TestPolicy(t *testing.T) {
	t.Parallel()
	secret := corpus.Canaries()[1].Secrets[0]
	for name, tc := range map[string]struct {
		policy  workspace.Policy
		changes map[string]string
		says    string
	}{
		"few files":                  {workspace.Policy{MaxChangedFiles: 2}, map[string]string{"x": "1", "y": "2"}, ""},
		"many files":                 {workspace.Policy{MaxChangedFiles: 1}, map[string]string{"x": "1", "y": "2"}, "2 files changed, and spec.workspace.maxChangedFiles is 1"},
		"allowed path":               {workspace.Policy{AllowedPaths: []string{"a/", "README.md"}}, map[string]string{"a/b/x": "1", "README.md": "2"}, ""},
		"other path":                 {workspace.Policy{AllowedPaths: []string{"a"}}, map[string]string{"ab": "1", "a/x": "1"}, `outside of spec.workspace.allowedPaths: "ab"`},
		"removed outside":            {workspace.Policy{AllowedPaths: []string{"a"}}, map[string]string{"README.md": ""}, `"README.md"`},
		"workflow":                   {workspace.Policy{DenyControlPaths: true}, map[string]string{".GitHub/workflows/x.yml": "1", "a/.gitattributes": "2", "docs/x": "3"}, `".GitHub/workflows/x.yml", "a/.gitattributes"`},
		"hooks of agents":            {workspace.Policy{DenyControlPaths: true}, map[string]string{"a/.claude/settings.json": "{}"}, `.claude`},
		"no control":                 {workspace.Policy{DenyControlPaths: true}, map[string]string{"github/x": "1", ".gitignore": "2"}, ""},
		"binary":                     {workspace.Policy{RejectBinary: true}, map[string]string{"x": "a\x00b", "y": "text"}, `binary, which spec.workspace.rejectBinaryFiles refuses: "x"`},
		"secret":                     {workspace.Policy{RejectSecrets: true}, map[string]string{"x.env": "KEY=" + secret + "\n", "y": "text"}, `"x.env"`},
		"secret that was there":      {workspace.Policy{RejectSecrets: true}, map[string]string{"config.yml": "token: " + corpus.Canaries()[0].Secrets[0] + "\nport: 2\n"}, ""},
		"code that names secrets":    {workspace.Policy{RejectSecrets: true}, map[string]string{"x.go": "package x\n\nfunc f() { token := get(); use(token, password) }\n"}, ""},
		"many names":                 {workspace.Policy{AllowedPaths: []string{"z"}}, map[string]string{"1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "6", "7": "7"}, "and 2 more"},
		"no policy allows all of it": {workspace.Policy{}, map[string]string{".github/x": "a\x00b" + secret}, ""},
	} {
		r, d := before(t)
		for _, path := range slices.Sorted(maps.Keys(tc.changes)) {
			mode := "100644"
			if tc.changes[path] == "" {
				mode = ""
			}
			r.change(d, path, mode, tc.changes[path])
		}
		_, err := commit.Build(d, d.Commit, tc.policy, "m", at)
		switch {
		case tc.says == "" && err != nil, tc.says != "" && (!errors.Is(err, commit.ErrPolicy) || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: %v, want %q", name, err, tc.says)
		case err != nil && strings.Contains(err.Error(), secret):
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}
