// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLists: every entry that packages export for a list is in the list, and no package is forgotten.
func TestLists(t *testing.T) {
	for _, tc := range []struct {
		// what is the type of the list's entries, as other packages write it.
		what string
		// packages are the folders whose packages must each export one; except lists the exceptions.
		packages string
		except   []string
		list     string
	}{
		{"toolkit.Tool", "pkg/worker/tool/*", []string{"pkg/worker/tool/connector", "pkg/worker/tool/custom", "pkg/worker/tool/mcp"}, "pkg/worker/tools/tools.go"},
		{"llm.Vendor", "pkg/llm/*", []string{"pkg/llm/members", "pkg/llm/transcribe", "pkg/llm/vendors", "pkg/llm/wire"}, "pkg/llm/vendors/vendors.go"},
		{"runner.Runner", "pkg/worker/runner/*", []string{"pkg/worker/runner/runnertest"}, "pkg/worker/runners/runners.go"},
	} {
		listed := selectors(parseAll(t, tc.list))
		packages := map[string]bool{}
		for _, f := range sources(t, strings.TrimSuffix(tc.packages, "/*")) {
			if !match(tc.packages, f.pkg) || slices.Contains(tc.except, f.pkg) {
				continue
			}
			packages[f.pkg] = packages[f.pkg] || false
			for _, name := range exports(parseAll(t, f.path), tc.what) {
				packages[f.pkg] = true
				if entry := filepath.Base(f.pkg) + "." + name; !listed[entry] {
					t.Errorf("%s: %s is a %s that is not in %s", f.path, name, tc.what, tc.list)
				}
			}
		}
		for _, pkg := range slices.Sorted(maps.Keys(packages)) {
			if !packages[pkg] {
				t.Errorf("%s exports no %s for %s", pkg, tc.what, tc.list)
			}
		}
		if len(packages) == 0 {
			t.Errorf("no package in %s", tc.packages)
		}
	}
}

func parseAll(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// selectors are all expressions of the form package.Name in a file.
func selectors(f *ast.File) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			found[selector(s)] = true
		}
		return true
	})
	return found
}

func selector(e ast.Expr) string {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// exports are the exported variables of a file that have a type, by declaration
// or by a literal.
func exports(f *ast.File, what string) []string {
	var names []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || len(v.Names) != 1 || !v.Names[0].IsExported() {
				continue
			}
			fits := selector(v.Type) == what
			if len(v.Values) == 1 {
				l, ok := v.Values[0].(*ast.CompositeLit)
				fits = fits || ok && selector(l.Type) == what
			}
			if fits {
				names = append(names, v.Names[0].Name)
			}
		}
	}
	return names
}
