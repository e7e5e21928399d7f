// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Half of the files have at most medianLines lines and nine of ten at most p90Lines. They may only shrink.
const (
	medianLines, p90Lines = 120, 300
	maxMethods            = 20
	// manyMethods begins the reason in the doc comment of a type that has more than maxMethods methods.
	manyMethods = "many methods because"
)

// TestShape: most files are short, and a type has few methods or says why not.
func TestShape(t *testing.T) {
	var lines []int
	methods, docs := map[string]int{}, map[string]string{}
	for _, f := range withTests(t, "pkg", "cmd", "test", "hack") {
		if f.generated {
			continue
		}
		lines = append(lines, f.lines)
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f.path), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[f.pkg+"."+receiver(d.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok {
						docs[f.pkg+"."+s.Name.Name] = d.Doc.Text() + s.Doc.Text()
					}
				}
			}
		}
	}
	slices.Sort(lines)
	median, p90 := lines[len(lines)/2], lines[len(lines)*9/10]
	t.Logf("%d files: median %d lines, 90%% have at most %d", len(lines), median, p90)
	if median > medianLines || p90 > p90Lines {
		t.Errorf("files have a median of %d lines (at most %d), and 90%% have at most %d (%d)", median, medianLines, p90, p90Lines)
	}
	for name, n := range methods {
		because := strings.Contains(strings.Join(strings.Fields(docs[name]), " "), manyMethods)
		switch {
		case n > maxMethods && !because:
			t.Errorf("%s has %d methods, more than %d: divide it, or let its doc comment say that it has %s …", name, n, maxMethods, manyMethods)
		case n > maxMethods:
			t.Logf("%s has %d methods", name, n)
		case because:
			t.Errorf("%s has %d methods: its doc comment need not say why", name, n)
		}
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
