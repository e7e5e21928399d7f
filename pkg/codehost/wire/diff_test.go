// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// TestCut: a diff is cut at the end of a line, and is valid UTF-8.
func TestCut(t *testing.T) {
	line := "+" + strings.Repeat("x", 98) + "\n"
	for _, c := range []struct {
		name, diff string
		size       int
		more       bool
	}{
		{"short", "+a\n", 3, false},
		{"nothing", "", 0, false},
		{"without an end of the line", "+a", 2, false},
		{"not UTF-8", "+\xff\xfe\n", 5, false},
		{"as long as allowed", strings.Repeat("x", codehost.MaxDiff), codehost.MaxDiff, false},
		{"too long", strings.Repeat(line, codehost.MaxDiff/len(line)+5), codehost.MaxDiff / len(line) * len(line), true},
		{"too long as UTF-8", strings.Repeat("\xffx\n", codehost.MaxDiff/3), codehost.MaxDiff / 5 * 5, true},
		{"one line too long", strings.Repeat("x", codehost.MaxDiff+1), 0, true},
		{"a character at the end", "+\n" + strings.Repeat("x", codehost.MaxDiff-3) + "\u2713", 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, more, err := wire.Diff(iotest.HalfReader(strings.NewReader(c.diff)))
			if err != nil || more != c.more || len(got) != c.size || !utf8.ValidString(got) {
				t.Errorf("%d bytes, more %t, %v; want %d bytes", len(got), more, err, c.size)
			}
		})
	}
	broken := errors.New("broken")
	if got, more, err := wire.Diff(iotest.ErrReader(broken)); got != "" || more || !errors.Is(err, broken) {
		t.Errorf("%q %t %v", got, more, err)
	}
}

// TestPatches: the patches of files are found by their names.
func TestPatches(t *testing.T) {
	lines := func(all ...string) string { return strings.Join(all, "\n") + "\n" }
	two := lines("diff --git a/a b/a", "--- a/a", "+++ b/a", "@@ -1 +1 @@", "-x", "+y", "diff --git a/b b/b", "--- a/b", "+++ b/b", "@@ -1 +1 @@", "-x", "+z")
	for _, c := range []struct {
		name, diff string
		cut        bool
		want       map[string]string
	}{
		{"nothing", "", false, nil},
		{"no diff", "words of the host\n@@ -1 +1 @@\n", false, nil},
		{"two files", two, false, map[string]string{"a": "@@ -1 +1 @@\n-x\n+y", "b": "@@ -1 +1 @@\n-x\n+z"}},
		{"two files, cut", two, true, map[string]string{"a": "@@ -1 +1 @@\n-x\n+y"}},
		{"removed", lines("diff --git a/a b/a", "--- a/a", "+++ /dev/null", "@@ -1 +0,0 @@", "-x"), false, map[string]string{"a": "@@ -1 +0,0 @@\n-x"}},
		{"a line like a header", lines("diff --git a/a b/a", "--- /dev/null", "+++ b/a", "@@ -0,0 +1,2 @@", "+++ b/c", "+diff --git a/d b/d"), false, map[string]string{"a": "@@ -0,0 +1,2 @@\n+++ b/c\n+diff --git a/d b/d"}},
		{"quoted", lines(`diff --git "a/\303\244\t\"\\" "b/\303\244\t\"\\"`, `--- "a/\303\244\t\"\\"`, `+++ "b/\303\244\t\"\\"`, "@@ -1 +1 @@", "-x", "+y"), false, map[string]string{"\u00e4\t\"\\": "@@ -1 +1 @@\n-x\n+y"}},
		{"only a mode", lines("diff --git a/a b/a", "old mode 100644", "new mode 100755"), false, nil},
		{"no end", "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file", false, map[string]string{"a": "@@ -1 +1 @@\n-x\n\\ No newline at end of file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wire.Patches(c.diff, c.cut); !maps.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// FuzzPatches: nothing that a host sends is a panic, and what Part makes is found again.
func FuzzPatches(f *testing.F) {
	f.Add("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n", "a")
	f.Add("--- \"a/\\3\n+++ \"b\\\n@@ ", "a \"\\\n\t\x01\x7f")
	f.Fuzz(func(t *testing.T, diff, name string) {
		wire.Patches(diff, false)
		if name = wire.Text(name); name == "" || strings.HasSuffix(name, "\t") || strings.ContainsRune(name, 0) {
			return
		}
		const patch = "@@ -1 +1 @@\n-x\n+y"
		for _, status := range []string{"added", "removed", "modified", "renamed"} {
			part := wire.Part(codehost.File{Name: name, Status: status, Patch: patch}, "")
			if got := wire.Patches(part+part, false); len(got) != 1 || got[name] != patch {
				t.Errorf("%s: %q in %q", status, got, part)
			}
		}
	})
}

// TestList: a list has as many texts as can be kept, and none if reading it failed.
func TestList(t *testing.T) {
	broken := errors.New("broken")
	text := strings.Repeat("x", 1<<20)
	l := wire.List[string]{Text: func(s string) string { return s }}
	for range 64 {
		if err := l.Add(text, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Add("x", broken); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := l.Add("x", nil); !errors.Is(err, codehost.ErrUnavailable) {
		t.Error(err)
	}
	if all, err := l.Whole(nil); err != nil || len(all) != 64 {
		t.Errorf("%d %v", len(all), err)
	}
	if all, err := l.Whole(broken); !errors.Is(err, broken) || all != nil {
		t.Errorf("%d %v", len(all), err)
	}
}

// TestPage: a page has all items of an answer or is an error.
func TestPage(t *testing.T) {
	if p, err := wire.Page([]string{"1", "2"}, true, strconv.Atoi); err != nil || !p.More || !slices.Equal(p.Items, []int{1, 2}) {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := wire.Page([]string{"1", "x"}, true, strconv.Atoi); !errors.Is(err, strconv.ErrSyntax) || p.More || p.Items != nil {
		t.Errorf("%+v %v", p, err)
	}
}

// TestNames: only what names one user or one label may be part of a path.
func TestNames(t *testing.T) {
	for login, want := range map[string]bool{
		"ada": true, "Ada-9": true, "a.b_c": true, "dependabot[bot]": true, strings.Repeat("a", 128): true, "": false, ".": false, "..": false, "a/b": false, "a?b": false,
		"a#b": false, "a b": false, "a%2fb": false, "a\n": false, "ada\n": false, "-a": false, "a[bot]x": false, "[bot]": false, "ä": false, strings.Repeat("a", 129): false,
	} {
		if wire.IsLogin(login) != want {
			t.Errorf("login %q: %t", login, !want)
		}
	}
	for label, want := range map[string]bool{
		"bug": true, "a/b?c#d%e": true, "platform:merge": true, "\u2713": true, "...": true, "": false, " ": false, ".": false, "..": false, " .. ": false, "a\nb": false,
	} {
		if err := wire.CheckLabel(label); (err == nil) != want || err != nil && !errors.Is(err, codehost.ErrRefused) {
			t.Errorf("label %q: %v", label, err)
		}
	}
}

// TestURL: only what a browser may open.
func TestURL(t *testing.T) {
	for address, want := range map[string]bool{
		"https://example.com/a": true, "http://example.com": true, "": false, "javascript:alert(1)": false, "https:///a": false, "//example.com/a": false,
		"https://user:secret@example.com": false, "data:text/html,x": false, "https://example.com/" + strings.Repeat("x", 2048): false, "https://example.com/\xff": false,
	} {
		if got := wire.URL(address); got != address && got != "" || (got != "") != want {
			t.Errorf("%.40q: %.40q", address, got)
		}
	}
}
