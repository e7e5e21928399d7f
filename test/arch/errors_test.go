// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsNameNoPackages: no text begins with the name of its package, as in "spool: …". Such a text tells users where the code is,
// and not what was wrong. Panics are for us.
func TestErrorsNameNoPackages(t *testing.T) {
	for _, f := range sources(t, "pkg") {
		if f.generated {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, f.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		prefix := file.Name.Name + ": "
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return called(n) != "panic"
			case *ast.BasicLit:
				if strings.HasPrefix(text(n), prefix) {
					t.Errorf("%s:%d: %s begins with the name of the package", f.path, fset.Position(n.Pos()).Line, n.Value)
				}
			}
			return true
		})
	}
}
