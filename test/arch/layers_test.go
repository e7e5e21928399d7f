// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch tests the shape of the code base: which packages may import which,
// as layers.txt defines it, and what every package, file and kind must have.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/platform-ai/platform"
	root   = "../.."
)

// sourceFile is one non-test Go file of the product.
type sourceFile struct {
	pkg       string // folder below the root, with slashes
	path      string
	lines     int
	generated bool
	doc       bool // has a package comment
	main      bool
	imports   []string
}

// sources reads every non-test Go file below the given folders of the root.
func sources(t *testing.T, folders ...string) []sourceFile {
	t.Helper()
	return slices.DeleteFunc(withTests(t, folders...), func(f sourceFile) bool { return strings.HasSuffix(f.path, "_test.go") })
}

// withTests reads the test files as well.
func withTests(t *testing.T, folders ...string) []sourceFile {
	t.Helper()
	var files []sourceFile
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
					return filepath.SkipDir // a module of its own
				}
				return nil
			}
			if !strings.HasSuffix(path, ".go") {
				return nil
			}
			files = append(files, parse(t, path))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no Go files below %v", folders)
	}
	return files
}

func parse(t *testing.T, path string) sourceFile {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), path, data, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		t.Fatal(err)
	}
	src := sourceFile{
		pkg: filepath.ToSlash(filepath.Dir(rel)), path: filepath.ToSlash(rel), lines: strings.Count(string(data), "\n"),
		generated: ast.IsGenerated(f), doc: f.Doc != nil && f.Doc.Text() != "", main: f.Name.Name == "main",
	}
	for _, imp := range f.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		src.imports = append(src.imports, p)
	}
	return src
}

// rules are those of layers.txt.
type rules struct {
	layers [][]string // patterns, lowest layer first
	only   []rule     // packages besides from may not import to
	never  []rule     // from may not import to, not even through others
}

type rule struct{ from, to []string }

func readRules(t *testing.T) rules {
	t.Helper()
	data, err := os.ReadFile("layers.txt")
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case kind == "only" || kind == "never":
			from, to, ok := strings.Cut(rest, " : ")
			if !ok {
				t.Fatalf("no colon in rule %q", line)
			}
			ru := rule{from: fields(from), to: fields(to)}
			list := map[string]*[]rule{"only": &r.only, "never": &r.never}[kind]
			*list = append(*list, ru)
		default:
			r.layers = append(r.layers, fields(line))
		}
	}
	return r
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// match reports whether a folder or import path matches a pattern: "a/b" itself,
// "a/*" the children of a, "a/**" a and all below it.
func match(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/**"); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	if base, ok := strings.CutSuffix(pattern, "/*"); ok {
		rest, ok := strings.CutPrefix(path, base+"/")
		return ok && !strings.Contains(rest, "/")
	}
	return pattern == path
}

func matchAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, path) })
}

// layerOf returns the index of the layer of a package. A literal line takes precedence over a pattern.
func (r rules) layerOf(pkg string) int {
	found := -1
	for i, patterns := range r.layers {
		if slices.Contains(patterns, pkg) {
			return i
		}
		if found < 0 && matchAny(patterns, pkg) {
			found = i
		}
	}
	return found
}

// chains returns what a package imports, directly or through others, each with a shortest chain of imports that leads to it.
func chains(imports map[string][]string, pkg string) map[string][]string {
	found := map[string][]string{pkg: {pkg}}
	for next := []string{pkg}; len(next) > 0; next = next[1:] {
		for _, to := range imports[next[0]] {
			if _, ok := found[to]; !ok {
				found[to] = append(slices.Clone(found[next[0]]), to)
				next = append(next, to)
			}
		}
	}
	delete(found, pkg)
	return found
}

func TestLayers(t *testing.T) {
	r := readRules(t)
	imports := map[string][]string{} // by folder; only what is in this module
	for _, f := range sources(t, "pkg", "cmd") {
		for _, imp := range f.imports {
			if own, isOwn := strings.CutPrefix(imp, module+"/"); isOwn {
				imports[f.pkg] = append(imports[f.pkg], own)
			}
		}
		at := r.layerOf(f.pkg)
		if at < 0 {
			t.Errorf("%s: package %s has no layer in test/arch/layers.txt", f.path, f.pkg)
			continue
		}
		for _, imp := range f.imports {
			own, isOwn := strings.CutPrefix(imp, module+"/")
			target := imp
			if isOwn {
				target = own
				if to := r.layerOf(own); own != f.pkg && to >= at && !sameTree(r.layers[at], f.pkg, own) {
					t.Errorf("%s imports %s, which is not in a lower layer", f.path, own)
				}
			}
			for _, ru := range r.only {
				if matchAny(ru.to, target) && !matchAny(ru.from, f.pkg) {
					t.Errorf("%s imports %s, which only %v may", f.path, imp, ru.from)
				}
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		for to, chain := range chains(imports, pkg) {
			for _, ru := range r.never {
				if matchAny(ru.from, pkg) && matchAny(ru.to, to) {
					t.Errorf("%s may never be linked with %s: %s", pkg, to, strings.Join(chain, " imports "))
				}
			}
		}
	}
}

func TestChains(t *testing.T) {
	got := chains(map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": {"a", "d"}}, "a")
	want := map[string][]string{"b": {"a", "b"}, "c": {"a", "c"}, "d": {"a", "c", "d"}}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// sameTree reports whether one "**" pattern of the layer covers both packages:
// inside such a tree, which is one unit, imports are free.
func sameTree(patterns []string, a, b string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return strings.HasSuffix(p, "/**") && match(p, a) && match(p, b)
	})
}

func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range sources(t, "pkg", "cmd", "test") {
		if f.generated {
			continue
		}
		if _, ok := comments[f.pkg]; !ok {
			comments[f.pkg] = nil
		}
		if f.doc {
			comments[f.pkg] = append(comments[f.pkg], f.path)
		}
	}
	for pkg, in := range comments {
		if len(in) != 1 {
			t.Errorf("package %s has %d package comments, want 1: %v", pkg, len(in), in)
		}
	}
}

// maxLines is the hard limit for a hand-written file; a longer one should be split.
const maxLines, maxTestLines = 600, 800

func TestFileSizes(t *testing.T) {
	for _, f := range sources(t, "pkg", "cmd", "test") {
		if !f.generated && f.lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", f.path, f.lines, maxLines)
		}
		if f.main && strings.HasPrefix(f.pkg, "cmd/") && f.lines > 60 {
			t.Errorf("%s has %d lines: a main does flags, options and Run", f.path, f.lines)
		}
	}
	for _, folder := range []string{"pkg", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if n := strings.Count(string(data), "\n"); n > maxTestLines {
				t.Errorf("%s has %d lines, more than %d", path, n, maxTestLines)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"pkg/event", "pkg/event", true},
		{"pkg/event", "pkg/events", false},
		{"pkg/worker/tool/*", "pkg/worker/tool/file", true},
		{"pkg/worker/tool/*", "pkg/worker/tool", false},
		{"pkg/worker/tool/*", "pkg/worker/tool/file/deep", false},
		{"pkg/generated/**", "pkg/generated/a/b", true},
		{"pkg/generated/**", "pkg/generated", true},
		{"k8s.io/apiserver/**", "k8s.io/apiserverx", false},
	} {
		if got := match(tc.pattern, tc.path); got != tc.want {
			t.Errorf("match(%q, %q) = %v, want %v", tc.pattern, tc.path, got, tc.want)
		}
	}
}
