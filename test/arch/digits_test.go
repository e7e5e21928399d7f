// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// undigested are where JSON is decoded into any, or where a member of a JSON object is any, each with the reason why no number of
// others is rounded there.
var undigested = map[string]string{
	"pkg/gateway/conformance/readings.go m":           "what the kit itself wrote, to change one member of it",
	"pkg/llm/openai/errors.go Detail":                 "only compared with texts",
	"pkg/llm/openai/errors.go Code":                   "the vendor's code of an error, which people read",
	"pkg/server/auth/external/token.go EmailVerified": "true, false, or a text",
	"pkg/server/compat/messageform.go Content":        "only encoded",
	"pkg/server/facade/openapi/build.go v":            "constants of our own rows",
	"pkg/server/facade/rest/replace.go Value":         "only encoded",
	"pkg/server/registry/core/toolcall/values.go top": "policies compare doubles; the arguments themselves stay as they are",
	"pkg/tool/result.go Data":                         "only encoded",
	"pkg/worker/spool/spool.go Content":               "the worker's own event, whose numbers are small",
	"pkg/worker/tool/custom/custom.go Body":           "only encoded; canonical.Decode makes it",
}

// TestDigits: what others send is never decoded into any, whose numbers are float64 and lose digits: a name such as
// 1972435959496572929 would be another one. canonical.Decode keeps them, and so do json.RawMessage and a decoder with UseNumber.
func TestDigits(t *testing.T) {
	used := map[string]bool{}
	for _, f := range sources(t, "pkg", "cmd") {
		if f.generated {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, f.path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range undigestedIn(parsed) {
			key := f.path + " " + name
			if used[key] = true; undigested[key] == "" {
				t.Errorf("%s: JSON is decoded into any: use canonical.Decode, json.RawMessage or UseNumber, or give a reason in this test", key)
			}
		}
	}
	for key := range undigested {
		if !used[key] {
			t.Errorf("%s is not there any more", key)
		}
	}
}

// undigestedIn returns the variables that are any and decoded into, and the members of JSON objects that are any.
func undigestedIn(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				names = append(names, decoded(n.Body)...)
			}
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if field.Tag != nil && strings.Contains(field.Tag.Value, `json:"`) && isAny(field.Type) {
					for _, name := range field.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
		return true
	})
	return names
}

// decoded returns the variables of a func that are any and given to a decoder without UseNumber.
func decoded(body *ast.BlockStmt) (names []string) {
	loose, exact := map[string]bool{}, false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				loose[name.Name] = n.Type != nil && isAny(n.Type)
			}
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				literal, ok := right.(*ast.CompositeLit)
				if left, is := n.Lhs[min(i, len(n.Lhs)-1)].(*ast.Ident); ok && is && isAny(literal.Type) {
					loose[left.Name] = true
				}
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			exact = exact || called.Sel.Name == "UseNumber"
			if !slices.Contains([]string{"Unmarshal", "UnmarshalStrict", "Decode"}, called.Sel.Name) {
				return true
			}
			for _, a := range n.Args {
				address, ok := a.(*ast.UnaryExpr)
				if !ok || address.Op != token.AND {
					continue
				}
				if v, ok := address.X.(*ast.Ident); ok && loose[v.Name] {
					names = append(names, v.Name)
				}
			}
		}
		return true
	})
	if exact {
		return nil
	}
	return names
}

// isAny reports whether a type is any, or a slice or map of it.
func isAny(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "any"
	case *ast.InterfaceType:
		return len(e.Methods.List) == 0
	case *ast.ArrayType:
		return isAny(e.Elt)
	case *ast.MapType:
		return isAny(e.Value)
	}
	return false
}

// TestDigitsFinds: what TestDigits looks for is found.
func TestDigitsFinds(t *testing.T) {
	const source = `package p
func a(raw []byte) { var v any; _ = json.Unmarshal(raw, &v) }
func b(raw []byte) { m := map[string]any{}; _ = json.NewDecoder(r).Decode(&m) }
func c(raw []byte) { var list []any; d := json.NewDecoder(r); d.UseNumber(); _ = d.Decode(&list) }
func d(raw []byte) { var v json.RawMessage; _ = json.Unmarshal(raw, &v) }
type e struct { A any ` + "`json:\"a\"`" + `; B any; C map[string][]any ` + "`json:\"c\"`" + ` }`
	parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := undigestedIn(parsed); !slices.Equal(got, []string{"v", "m", "A", "C"}) {
		t.Error(fmt.Sprint(got))
	}
}
