// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/workspace/ignore"
)

// ignoredByGit returns those of the paths that git ignores in a folder whose .gitignore has this content.
func ignoredByGit(t *testing.T, content string, paths []string) []string {
	t.Helper()
	dir := t.TempDir()
	git := func(input string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "core.excludesFile=/dev/null"}, args...)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.Output()
		if e, ok := err.(*exec.ExitError); ok && e.ExitCode() == 1 && len(out) == 0 { //nolint:errorlint // as exec returns it
			return "" // none is
		}
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	git("", "init", "-q")
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(p)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return strings.FieldsFunc(git(strings.Join(paths, "\x00")+"\x00", "check-ignore", "-z", "--stdin"), func(r rune) bool { return r == 0 })
}

// ignored is what the package says about the same.
func ignored(content string, paths []string) (list []string) {
	var none *ignore.Rules
	rules := none.In("", []byte(content))
	for _, p := range paths {
		parts := strings.Split(p, "/")
		for i := range parts {
			if rules.Ignored(strings.Join(parts[:i+1], "/"), i < len(parts)-1) {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

var paths = []string{
	"a", "b", "ab", "abc", "a.o", "b.O", "foo.txt", "#x", "!x", "a b", "a ", `a\`, "a*", "a[b", "[a]", "build/x", "build/y/z", "src/build/x", "src/a.o", "src/foo/a", "foo/a/b/c", "x/foo/y", "x/y/foo/z",
	"doc/a.txt", "doc/b/a.txt", "doc/b/c/a.txt", ".hidden", "dir/.hidden", "A", "z9", "-", "]", "^", "caf\xc3\xa9",
}

func contents() []string {
	return []string{
		"", "*.o", "build/", "/build", "build/*", "**/foo", "foo/**", "a/**/b", "x/**/foo", "doc/**/a.txt", "doc/*.txt", "*\n!a", "*\n!*/\n!*.txt", "\\#x", "\\!x", "#x", "a\\ ", "a ", "a\\\\", "a\\*", "[ab]", "[!a]", "[^a]", "[a-c]", "[]a]",
		"[]-]", "[[:alpha:]]", "[[:digit:]]*", "a[", "a[b", "[a", "\\[a\\]", "**", "***", "a**", "/**", "**/", "foo**bar", "/", "//", "!", "foo\n!foo/a", "src/foo", "/src/foo/", "*/foo", "?", "??", "a?c", ".*", "*.txt\n!doc/b/a.txt", "foo\r\nbar", "\xef\xbb\xbfa",
		"caf?", "caf??", "[\\]]", "[a\\-z]", "[--a]", "[z-a]", "a\\", "doc/**", "doc/**/", "**/b/**", "**/**/a", "x/**/**/z", "!a\na",
	}
}

// TestLikeGit compares with the git program.
func TestLikeGit(t *testing.T) {
	t.Parallel()
	for _, content := range contents() {
		if want, got := ignoredByGit(t, content, paths), ignored(content, paths); !slices.Equal(got, want) {
			t.Errorf("%q: ignored are %q, by git %q", content, got, want)
		}
	}
}

// TestNested: the file of a folder holds below it, before those above.
func TestNested(t *testing.T) {
	t.Parallel()
	var none *ignore.Rules
	top := none.In("", []byte("*.log\n/only\n"))
	below := top.In("sub", []byte("!keep.log\n/only\ntmp/\n"))
	for name, want := range map[string]bool{"sub/a.log": true, "sub/keep.log": false, "sub/only": true, "sub/x/only": false, "sub/x/tmp": true} {
		if got := below.Ignored(name, strings.HasSuffix(name, "tmp")); got != want {
			t.Errorf("%s: ignored %v", name, got)
		}
	}
	if none.Ignored("a", false) || none.In("", []byte("# nothing\n")) != nil {
		t.Error("no pattern ignores something")
	}
}

// FuzzRules: no content of a file makes the package fail.
func FuzzRules(f *testing.F) {
	for _, c := range contents() {
		f.Add(c, "doc/b/a.txt")
	}
	f.Fuzz(func(_ *testing.T, content, name string) {
		var none *ignore.Rules
		rules := none.In("", []byte(content))
		_, _ = rules.Ignored(name, false), rules.Ignored(name, true)
	})
}
