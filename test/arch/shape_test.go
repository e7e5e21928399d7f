// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// Half of the files have at most medianLines lines and nine of ten at most p90Lines. The aim of the former is 120: it may
// only shrink.
const (
	medianLines, p90Lines = 130, 300
	maxMethods            = 20
)

// manyMethods are receivers with more than maxMethods methods, with their number of methods. Numbers may only shrink.
var manyMethods = map[string]int{
	"pkg/cli.app": 54,
	"pkg/controller/executor/kubernetes.Executor": 42,
	"pkg/plan.maker":                         25,
	"pkg/redact.scanner":                     65,
	"pkg/server/host/rbac.View":              23,
	"pkg/server/registry/core/task.Resource": 62,
	"pkg/storage/engine/local.Engine":        31,
	"pkg/storage/object.Store":               28,
	"pkg/storage/object.topic":               26,
	"pkg/worker/agentloop.loop":              26,
}

// TestShape: most files are short, and no receiver has too many methods.
func TestShape(t *testing.T) {
	var lines []int
	methods := map[string]int{}
	for _, f := range sources(t, "pkg", "cmd") {
		if f.generated {
			continue
		}
		lines = append(lines, f.lines)
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[f.pkg+"."+receiver(fn.Recv.List[0].Type)]++
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
		if most := max(maxMethods, manyMethods[name]); n > most {
			t.Errorf("%s has %d methods, more than %d: divide it", name, n, most)
		}
	}
	for name, most := range manyMethods {
		if methods[name] < most {
			t.Logf("%s has %d methods now: lower its number in manyMethods, which is %d", name, methods[name], most)
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
