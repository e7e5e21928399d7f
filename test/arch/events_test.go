// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContentOfEvents: the comment of each type of event, from which the reference is made, names all that the code puts into the
// content of such events.
func TestContentOfEvents(t *testing.T) {
	docs := map[string]string{}
	f, err := parser.ParseFile(token.NewFileSet(), root+"/"+apiFolder+"/executionevent_types.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Event") {
			docs[v.Names[0].Name] = v.Doc.Text()
		}
		return true
	})
	checked := 0
	for _, file := range sources(t, "pkg") {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			function, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			types, keys := contents(function, docs)
			if len(types) == 0 {
				continue
			}
			for _, key := range keys {
				checked++
				named := false
				for _, typ := range types {
					named = named || regexp.MustCompile(`\b`+key+`\b`).MatchString(docs[typ])
				}
				if !named {
					t.Errorf("%s: %s: content %q is in the comment of none of %v", file.path, function.Name.Name, key, types)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d members of contents were found", checked)
	}
}

// contents returns the types of events that a function makes, and the members of their contents: the keys of the maps in these
// calls, and of the variables that it passes to them.
func contents(function *ast.FuncDecl, docs map[string]string) (types, keys []string) {
	variables := map[string]bool{}
	literal := func(e ast.Expr) {
		if m, ok := e.(*ast.CompositeLit); ok {
			for _, e := range m.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					keys = append(keys, unquoted(kv.Key)...)
				}
			}
		}
	}
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 2 {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "New" {
			return true
		}
		typ, ok := call.Args[0].(*ast.SelectorExpr)
		if !ok || docs[typ.Sel.Name] == "" {
			return true
		}
		types = append(types, typ.Sel.Name)
		switch content := call.Args[len(call.Args)-1].(type) {
		case *ast.CompositeLit:
			literal(content)
		case *ast.Ident:
			variables[content.Name] = true
		}
		return true
	})
	ast.Inspect(function, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range a.Lhs {
			switch left := left.(type) {
			case *ast.IndexExpr:
				if x, ok := left.X.(*ast.Ident); ok && variables[x.Name] {
					keys = append(keys, unquoted(left.Index)...)
				}
			case *ast.Ident:
				if variables[left.Name] && i < len(a.Rhs) {
					literal(a.Rhs[i])
				}
			}
		}
		return true
	})
	return types, keys
}

func unquoted(e ast.Expr) []string {
	if l, ok := e.(*ast.BasicLit); ok {
		if s, err := strconv.Unquote(l.Value); err == nil {
			return []string{s}
		}
	}
	return nil
}
