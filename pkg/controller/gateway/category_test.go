// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestCategories looks at every reason of the API: those for which a task can fail have a category, and no others.
func TestCategories(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../apis/core/v1alpha1/reasons.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	// The parts of the list that are about how tasks and their attempts end.
	ends := []string{"Reasons of the end of a task", "Reasons of tasks that are refused before they run", "Reasons that a worker gives", "Reasons that come from where a run is"}
	found, parts := map[string]bool{}, 0
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		is := false
		for _, start := range ends {
			is = is || strings.HasPrefix(g.Doc.Text(), start)
		}
		if is {
			parts++
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			reason, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[reason] = true
			if _, ok := categories[reason]; ok != is {
				t.Errorf("%s: a category: %v; a task can fail for it: %v", v.Names[0].Name, ok, is)
			}
		}
	}
	if parts != len(ends) {
		t.Errorf("%d parts of the list are about ends, want %d", parts, len(ends))
	}
	for reason, c := range categories {
		if !found[reason] || texts[c] == "" {
			t.Errorf("%s is no reason, or nothing is said about it", reason)
		}
	}
	if len(texts) != int(tooLong)+1 {
		t.Errorf("%d texts", len(texts))
	}
}
