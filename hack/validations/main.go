// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Command validations leaves out of the generated validations what can find no error:
//
//	go run ./hack/validations <IN >OUT
//
// For each field that has a rule the generator writes a function. If the only rule is that the field may be absent, the function
// checks whether it is and returns no error in either case. The generator has no flag for that: it cannot know whether another rule
// depends on a rule that it writes. What leads only to such functions finds no error either, and goes with them. All other rules stay
// as they are and where they are.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// prefix begins the name of each function that validates a type.
const prefix = "Validate_"

var (
	ruleless = regexp.MustCompile(`(?m)^\t// field \S+ has no validation\n\n?`)
	// blank is a line that is left over in front of the first statement of a function.
	blank = regexp.MustCompile(`\(errs field\.ErrorList\) \{\n\n`)
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "validations:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	text, err := prune(raw)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// prune returns the file without what finds no error.
func prune(text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &source{text: text, files: files, file: file, functions: map[string]*ast.FuncDecl{}, finds: map[string]bool{}}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, prefix) {
			f.functions[fn.Name.Name] = fn
		}
	}
	// Types may contain themselves, so a function finds nothing unless a rule is reached from it.
	for changed := true; changed; {
		changed = false
		for name, fn := range f.functions {
			if !f.finds[name] && slices.ContainsFunc(fn.Body.List, f.statement) {
				f.finds[name], changed = true, true
			}
		}
	}
	f.leaveOut()
	pruned, err := withoutImports(blank.ReplaceAll(ruleless.ReplaceAll(f.rest(), nil), []byte("(errs field.ErrorList) {\n")))
	if err != nil {
		return nil, err
	}
	return format.Source(pruned)
}

// source is the file, and what is to be cut from it.
type source struct {
	text      []byte
	files     *token.FileSet
	file      *ast.File
	functions map[string]*ast.FuncDecl
	finds     map[string]bool
	cuts      [][2]int
}

// statement reports whether a statement can find an error. Each appends the errors that it finds.
func (f *source) statement(s ast.Stmt) bool {
	if body := ofField(s); body != nil {
		return slices.ContainsFunc(body.List, f.statement)
	}
	if !bytes.Contains(f.of(s), []byte("append(errs,")) {
		return false
	}
	called := leadsTo(s)
	return called == "" || f.functions[called] == nil || f.finds[called]
}

// ofField returns the body of the function that validates a field; nil if the statement is not the block of a field.
func ofField(s ast.Stmt) *ast.BlockStmt {
	block, ok := s.(*ast.BlockStmt)
	if !ok || len(block.List) == 0 {
		return nil
	}
	if assign, ok := block.List[0].(*ast.AssignStmt); ok && len(assign.Rhs) == 1 {
		if fn, ok := assign.Rhs[0].(*ast.FuncLit); ok {
			return fn.Body
		}
	}
	return nil
}

// leadsTo returns the function of this file that finds all the errors of a statement; "" if it may find some by itself. It
// knows two forms:
//
//	errs = append(errs, Validate_X(…)...)
//	if e := validate.EachY(…, Validate_X); len(e) != 0 { errs = append(errs, e...) }
func leadsTo(s ast.Stmt) string {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if add, ok := s.Rhs[0].(*ast.CallExpr); ok && len(add.Args) == 2 {
			if call, ok := add.Args[1].(*ast.CallExpr); ok {
				return function(call.Fun)
			}
		}
	case *ast.IfStmt:
		if init, ok := s.Init.(*ast.AssignStmt); ok {
			if call, ok := init.Rhs[0].(*ast.CallExpr); ok && len(call.Args) > 0 {
				if each, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(each.Sel.Name, "Each") {
					return function(call.Args[len(call.Args)-1])
				}
			}
		}
	}
	return ""
}

func function(e ast.Expr) string {
	if name, ok := e.(*ast.Ident); ok && strings.HasPrefix(name.Name, prefix) {
		return name.Name
	}
	return ""
}

// leaveOut collects what is cut: functions that find nothing, unless a kind is registered with them, and blocks and calls.
func (f *source) leaveOut() {
	registered := map[string]bool{}
	for _, d := range f.file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && f.functions[fn.Name.Name] == nil {
			ast.Inspect(fn, func(n ast.Node) bool {
				if e, ok := n.(ast.Expr); ok {
					registered[function(e)] = true
				}
				return true
			})
		}
	}
	for name, fn := range f.functions {
		if !f.finds[name] && !registered[name] {
			f.cut(fn.Doc.Pos(), fn.End())
			continue
		}
		for _, s := range fn.Body.List {
			body := ofField(s)
			switch {
			case body != nil && !f.statement(s):
				f.cut(s.Pos(), s.End())
			case body != nil:
				for _, s := range body.List {
					f.call(s)
				}
			default:
				f.call(s)
			}
		}
	}
}

// call cuts a statement that only leads to what finds nothing, and the comment above it.
func (f *source) call(s ast.Stmt) {
	if leadsTo(s) == "" || f.statement(s) {
		return
	}
	from := s.Pos()
	for _, c := range f.file.Comments {
		if f.files.Position(c.End()).Line == f.files.Position(s.Pos()).Line-1 {
			from = c.Pos()
		}
	}
	f.cut(from, s.End())
}

// cut cuts whole lines, and an empty one after them.
func (f *source) cut(from, to token.Pos) {
	a, b := f.files.Position(from).Offset, f.files.Position(to).Offset
	a = bytes.LastIndexByte(f.text[:a], '\n') + 1
	for range 2 {
		if b < len(f.text) && f.text[b] == '\n' {
			b++
		}
	}
	f.cuts = append(f.cuts, [2]int{a, b})
}

func (f *source) of(n ast.Node) []byte {
	return f.text[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset]
}

// rest returns the text that is not cut.
func (f *source) rest() []byte {
	slices.SortFunc(f.cuts, func(a, b [2]int) int { return cmp.Compare(a[0], b[0]) })
	var out []byte
	at := 0
	for _, c := range f.cuts {
		out = append(out, f.text[at:c[0]]...)
		at = c[1]
	}
	return append(out, f.text[at:]...)
}

// withoutImports cuts the imports that nothing uses any more. The generator names each.
func withoutImports(text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if name, ok := s.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	f := &source{text: text, files: files, file: file}
	for _, i := range file.Imports {
		if i.Name != nil && !used[i.Name.Name] {
			f.cut(i.Pos(), i.End())
		}
	}
	return f.rest(), nil
}
