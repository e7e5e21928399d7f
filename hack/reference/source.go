// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// apiFolder contains the types of the API group.
const apiFolder = "pkg/apis/core/v1alpha1"

// source holds the declared types and constants of a package.
type source struct {
	types  map[string]*typeDecl
	consts []constDecl
}

// typeDecl is a declared type.
type typeDecl struct {
	name   string
	doc    string
	tags   []tag
	fields []field // of a struct
	under  string  // the underlying type of one that is not a struct
}

// field is a field of a struct; one without a JSON name is inlined.
type field struct {
	json string
	expr ast.Expr
	doc  string
	tags []tag
}

// constDecl is a constant with a string value.
type constDecl struct {
	name, typ, value, doc string
	group                 string // the comment of its block
	file                  string
}

// tag is one line of a comment such as +k8s:maxLength=63.
type tag struct{ name, value string }

// readSource parses the hand-written files of a package.
func readSource(folder string) (*source, error) {
	files, err := parseFolder(folder)
	if err != nil {
		return nil, err
	}
	s := &source{types: map[string]*typeDecl{}}
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			switch g.Tok {
			case token.TYPE:
				s.addTypes(g)
			case token.CONST:
				s.addConsts(g, f.name)
			default:
			}
		}
	}
	return s, nil
}

// goFile is a parsed file.
type goFile struct {
	name string
	ast  *ast.File
	set  *token.FileSet
}

// parseFolder parses the files of a package, except tests and generated files, in the order of their names.
func parseFolder(folder string) ([]goFile, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []goFile
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, goFile{name, f, set})
	}
	return files, nil
}

func (s *source) addTypes(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t := spec.(*ast.TypeSpec)
		doc := t.Doc
		if doc == nil {
			doc = g.Doc
		}
		d := &typeDecl{name: t.Name.Name}
		d.doc, d.tags = comment(doc)
		if st, ok := t.Type.(*ast.StructType); ok {
			for _, f := range st.Fields.List {
				d.fields = append(d.fields, newField(f))
			}
		} else if id, ok := t.Type.(*ast.Ident); ok {
			d.under = id.Name
		}
		s.types[d.name] = d
	}
}

func newField(f *ast.Field) field {
	var out field
	out.expr = f.Type
	out.doc, out.tags = comment(f.Doc)
	if f.Tag != nil {
		raw, _ := strconv.Unquote(f.Tag.Value) // the parser has accepted it
		if _, rest, ok := strings.Cut(raw, `json:"`); ok {
			rest, _, _ = strings.Cut(rest, `"`)
			out.json, _, _ = strings.Cut(rest, ",")
		}
	}
	return out
}

func (s *source) addConsts(g *ast.GenDecl, file string) {
	group, _ := comment(g.Doc)
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		if len(v.Values) != 1 {
			continue
		}
		value, ok := stringOf(v.Values[0], nil)
		if !ok {
			continue
		}
		c := constDecl{name: v.Names[0].Name, value: value, group: group, file: file}
		if c.doc, _ = comment(v.Doc); c.doc == "" {
			c.doc, _ = comment(v.Comment)
		}
		if !g.Lparen.IsValid() {
			c.doc, c.group = group, ""
		}
		if id, ok := v.Type.(*ast.Ident); ok {
			c.typ = id.Name
		}
		s.consts = append(s.consts, c)
	}
}

// comment splits a comment into its text and its tags.
func comment(g *ast.CommentGroup) (string, []tag) {
	if g == nil {
		return "", nil
	}
	var text []string
	var tags []tag
	for line := range strings.Lines(g.Text()) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "+"); ok {
			name, value, _ := strings.Cut(rest, "=")
			tags = append(tags, tag{name, value})
		} else {
			text = append(text, line)
		}
	}
	return strings.TrimSpace(strings.Join(text, "\n")), tags
}

// has reports whether one of the tags has one of the names.
func has(tags []tag, names ...string) bool {
	return slices.ContainsFunc(tags, func(t tag) bool { return slices.Contains(names, t.name) })
}

// stringOf evaluates an expression of string literals, named strings and +.
func stringOf(e ast.Expr, named map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		s, ok := named[e.Name]
		return s, ok
	case *ast.ParenExpr:
		return stringOf(e.X, named)
	case *ast.BinaryExpr:
		a, ok1 := stringOf(e.X, named)
		b, ok2 := stringOf(e.Y, named)
		return a + b, ok1 && ok2 && e.Op == token.ADD
	default:
		return "", false
	}
}
