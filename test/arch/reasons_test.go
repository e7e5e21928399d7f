// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasonsFile is the one list of reasons.
const reasonsFile = "pkg/apis/core/v1alpha1/reasons.go"

var (
	reasonName  = regexp.MustCompile(`^[rR]eason[A-Z]`)
	reasonValue = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)
	twoWords    = regexp.MustCompile(`^[A-Z]+[a-z]+[A-Z]|^OOM`)
	// eventTypes are reasons that are types of events as well.
	eventTypes = []string{"TaskSucceeded", "TaskFailed", "TaskCancelled", "WorkerFailed"}
)

// text is the value of a string literal, or empty.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// reasons reads the list: the constant of each value.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, reasonsFile), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			name, value := v.Names[0].Name, text(v.Values[0])
			switch {
			case len(v.Names) != 1 || !reasonName.MatchString(name) || !reasonValue.MatchString(value):
				t.Errorf("%s: %s = %q: want one constant ReasonX, of one CamelCase word", reasonsFile, name, value)
			case !strings.HasPrefix(v.Doc.Text(), name):
				t.Errorf("%s: %s needs a comment that says when it occurs", reasonsFile, name)
			case values[value] != "":
				t.Errorf("%s: %s and %s are both %q", reasonsFile, values[value], name, value)
			}
			values[value] = name
		}
	}
	if len(values) == 0 {
		t.Fatalf("%s has no constants", reasonsFile)
	}
	return values
}

// TestReasons checks that every reason is a constant of the API: no package has constants of its own, or writes one as
// text.
func TestReasons(t *testing.T) {
	known := reasons(t)
	for _, f := range sources(t, "pkg", "cmd") {
		// The standalone host answers for core Kubernetes, which defines these reasons.
		if f.generated || f.path == reasonsFile || strings.HasPrefix(f.pkg, "pkg/server/host") {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, f.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		wrong := func(n ast.Node, what, value string) {
			t.Errorf("%s:%d: %s %q: reasons are constants of %s", f.path, fset.Position(n.Pos()).Line, what, value, reasonsFile)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if reasonName.MatchString(name.Name) && i < len(n.Values) && reasonValue.MatchString(text(n.Values[i])) {
						wrong(n, "the constant "+name.Name+" is", text(n.Values[i]))
					}
				}
			case *ast.CompositeLit:
				if isStatus(n) { // an HTTP status has reasons of its own
					return false
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && strings.EqualFold(key.Name, "reason") && reasonValue.MatchString(text(n.Value)) {
					wrong(n, "a field Reason is", text(n.Value))
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if to, ok := l.(*ast.SelectorExpr); ok && strings.EqualFold(to.Sel.Name, "reason") && i < len(n.Rhs) && reasonValue.MatchString(text(n.Rhs[i])) {
						wrong(n, "a field Reason is given", text(n.Rhs[i]))
					}
				}
			case *ast.CallExpr:
				if fn := called(n); len(n.Args) > 0 && slices.Contains([]string{"fail", "unavailable", "refuse", "missing"}, strings.ToLower(fn)) &&
					(strings.HasPrefix(f.pkg, "pkg/controller") || strings.HasPrefix(f.pkg, "pkg/worker")) && reasonValue.MatchString(text(n.Args[0])) {
					wrong(n, fn+" is called with", text(n.Args[0]))
				}
			case *ast.BasicLit:
				if v := text(n); known[v] != "" && twoWords.MatchString(v) && !slices.Contains(eventTypes, v) && !strings.HasPrefix(f.pkg, "pkg/apis/") {
					wrong(n, "use v1alpha1."+known[v]+" for", v)
				}
			}
			return true
		})
	}
}

// isStatus reports whether a literal is a metav1.Status.
func isStatus(n *ast.CompositeLit) bool {
	s, ok := n.Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Status"
}

// called is the name of the function that is called, without its package.
func called(n *ast.CallExpr) string {
	switch fn := n.Fun.(type) {
	case *ast.Ident:
		return fn.Name
	case *ast.SelectorExpr:
		return fn.Sel.Name
	default:
		return ""
	}
}
