// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the import path of the product.
const module = "github.com/platform-ai/platform/"

// metricDecl is a metric as declared in the source.
type metricDecl struct {
	name, typ, help string
	labels          []string
	programs        string
}

// metrics describes every metric that the product declares. They are read from the source, because most have no value
// until something happens, and are therefore in no registry.
func metrics(root string) (string, error) {
	servers, err := serversOf(root)
	if err != nil {
		return "", err
	}
	found := map[string]metricDecl{}
	err = filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		declared, err := metricsOf(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		for _, m := range declared {
			if found[m.name].name != "" {
				return fmt.Errorf("%s is declared twice", m.name)
			}
			m.programs = strings.Join(servers[filepath.ToSlash(rel)], ", ")
			found[m.name] = m
		}
		return err
	})
	if err != nil {
		return "", err
	}
	p := &page{}
	p.heading(1, "Metrics")
	p.text("Every metric of the platform itself, in the Prometheus format. The servers serve them at `/metrics` of the secure port, " +
		"to those whose role names that path; platform-controller and platform-router at `--metrics-bind-address`. " +
		"Those of the libraries (`apiserver_*`, `rest_client_*`, `controller_runtime_*`, `workqueue_*`, `go_*`, `process_*`) are there, too.")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		rows = append(rows, []string{code(name), m.typ, code(strings.Join(m.labels, "`, `")), prose(m.help), m.programs})
	}
	p.table([]string{"Metric", "Type", "Labels", "Meaning", "Served by"}, rows)
	return p.String(), nil
}

// serversOf returns which programs link a package, by the package's directory.
func serversOf(root string) (map[string][]string, error) {
	by := map[string][]string{}
	for _, program := range programs {
		cmd := exec.CommandContext(context.Background(), "go", "list", "-deps", "./cmd/"+program.name)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list -deps ./cmd/%s: %w", program.name, err)
		}
		for pkg := range strings.FieldsSeq(string(out)) {
			if folder, ok := strings.CutPrefix(pkg, module); ok {
				by[folder] = append(by[folder], program.name)
			}
		}
	}
	return by, nil
}

// scope resolves names where a metric is declared.
type scope struct {
	strings map[string]string
	lists   map[string][]string
	helpers map[string]*ast.FuncLit // local functions that make metrics, or their options
}

// metricsOf returns the metrics that a package declares. A metric whose name cannot be read is an error, so that none
// is left out.
func metricsOf(folder string) ([]metricDecl, error) {
	files, err := parseFolder(folder)
	if err != nil {
		return nil, err
	}
	constants := map[string]string{}
	for _, f := range files {
		addConstants(f.ast, constants)
	}
	var out []metricDecl
	for _, f := range files {
		if !imports(f.ast, "github.com/prometheus/client_golang/prometheus") {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			in := scope{maps.Clone(constants), map[string][]string{}, map[string]*ast.FuncLit{}}
			addConstants(fn.Body, in.strings)
			in.addLocals(fn.Body)
			calls, err := in.declared(fn.Body)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", filepath.Join(folder, f.name), fn.Name.Name, err)
			}
			out = append(out, calls...)
		}
	}
	return out, nil
}

func imports(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// addConstants collects the constants with string values below a node.
func addConstants(n ast.Node, to map[string]string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
			for i, name := range v.Names {
				if s, ok := stringOf(v.Values[i], to); ok {
					to[name.Name] = s
				}
			}
		}
		_, inner := n.(*ast.FuncDecl)
		return !inner
	})
}

// addLocals collects a function's local lists and functions.
func (in scope) addLocals(body *ast.BlockStmt) {
	for _, st := range body.List {
		a, ok := st.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			continue
		}
		id, ok := a.Lhs[0].(*ast.Ident)
		if !ok {
			continue
		}
		if fn, ok := a.Rhs[0].(*ast.FuncLit); ok {
			in.helpers[id.Name] = fn
		} else if list, err := in.list(a.Rhs[0]); err == nil {
			in.lists[id.Name] = list
		}
	}
}

// declared returns the metrics that a function makes, either itself or through its helpers.
func (in scope) declared(body *ast.BlockStmt) (out []metricDecl, err error) {
	ast.Inspect(body, func(n ast.Node) bool {
		if err != nil {
			return false
		}
		if fn, ok := n.(*ast.FuncLit); ok && slices.Contains(slices.Collect(maps.Values(in.helpers)), fn) {
			return false // it counts where it is called
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		m, is, e := in.metric(call)
		if is {
			out, err = append(out, m), e
		}
		return !is
	})
	return out, err
}

// metric parses a call that makes a metric: a call of prometheus, or of a helper that does nothing else.
func (in scope) metric(call *ast.CallExpr) (metricDecl, bool, error) {
	if inner, within, ok := in.enter(call); ok {
		return within.metric(inner)
	}
	typ := constructor(call)
	if typ == "" {
		return metricDecl{}, false, nil
	}
	m := metricDecl{typ: typ}
	var err error
	if typ == "desc" {
		if m.name, err = in.text(call.Args[0]); err == nil {
			m.help, err = in.text(call.Args[1])
		}
		if m.typ = "gauge"; strings.HasSuffix(m.name, "_total") {
			m.typ = "counter"
		}
		return in.labelled(m, call.Args[2], err)
	}
	if m.name, m.help, err = in.options(call.Args[0]); err != nil {
		return m, true, err
	}
	if strings.HasSuffix(call.Fun.(*ast.SelectorExpr).Sel.Name, "Vec") {
		return in.labelled(m, call.Args[1], nil)
	}
	return m, true, nil
}

func (in scope) labelled(m metricDecl, labels ast.Expr, err error) (metricDecl, bool, error) {
	if err == nil {
		m.labels, err = in.list(labels)
	}
	if err != nil {
		err = fmt.Errorf("metric %q: %w", m.name, err)
	}
	return m, true, err
}

// constructor returns the type of the metric that a call of prometheus makes; empty for other calls.
func constructor(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := sel.X.(*ast.Ident); !ok || id.Name != "prometheus" {
		return ""
	}
	name := strings.TrimSuffix(strings.TrimSuffix(sel.Sel.Name, "Vec"), "Func")
	switch name {
	case "NewCounter", "NewGauge", "NewHistogram", "NewSummary", "NewDesc":
		return strings.ToLower(strings.TrimPrefix(name, "New"))
	}
	return ""
}

// enter resolves the call of a helper: it returns the call that the helper returns, and its scope.
func (in scope) enter(call *ast.CallExpr) (*ast.CallExpr, scope, bool) {
	e, within, ok := in.returned(call)
	inner, is := e.(*ast.CallExpr)
	return inner, within, ok && is
}

// returned returns the expression that a helper returns, with its parameters bound.
func (in scope) returned(call *ast.CallExpr) (ast.Expr, scope, bool) {
	id, ok := call.Fun.(*ast.Ident)
	if !ok || in.helpers[id.Name] == nil {
		return nil, in, false
	}
	fn := in.helpers[id.Name]
	within := scope{maps.Clone(in.strings), maps.Clone(in.lists), in.helpers}
	args := call.Args
	for _, param := range fn.Type.Params.List {
		_, rest := param.Type.(*ast.Ellipsis)
		for _, name := range param.Names {
			switch {
			case rest:
				within.lists[name.Name], _ = in.texts(args) // list fails if a label is unknown
			case len(args) > 0:
				if text, ok := stringOf(args[0], in.strings); ok {
					within.strings[name.Name] = text
				}
				args = args[1:]
			}
		}
	}
	for _, st := range fn.Body.List {
		if r, ok := st.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
			return r.Results[0], within, true
		}
	}
	return nil, in, false
}

// options reads the name and the help from options: a literal, a conversion of one, or a helper that returns one.
func (in scope) options(e ast.Expr) (name, help string, err error) {
	if call, ok := e.(*ast.CallExpr); ok {
		if inner, within, ok := in.returned(call); ok {
			return within.options(inner)
		}
		if len(call.Args) == 1 { // a conversion
			return in.options(call.Args[0])
		}
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return "", "", fmt.Errorf("the options of a metric are not a literal")
	}
	parts := map[string]string{}
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key := kv.Key.(*ast.Ident).Name; key {
		case "Namespace", "Subsystem", "Name", "Help":
			if parts[key], err = in.text(kv.Value); err != nil {
				return "", "", err
			}
		}
	}
	full := slices.DeleteFunc([]string{parts["Namespace"], parts["Subsystem"], parts["Name"]}, func(s string) bool { return s == "" })
	return strings.Join(full, "_"), parts["Help"], nil
}

func (in scope) text(e ast.Expr) (string, error) {
	s, ok := stringOf(e, in.strings)
	if !ok {
		return "", fmt.Errorf("a name or help is not made of constants")
	}
	return s, nil
}

// list reads a list of labels.
func (in scope) list(e ast.Expr) ([]string, error) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return in.texts(e.Elts)
	case *ast.Ident:
		list, ok := in.lists[e.Name]
		if ok || e.Name == "nil" {
			return list, nil
		}
	}
	return nil, fmt.Errorf("its labels are not a literal list")
}

func (in scope) texts(es []ast.Expr) ([]string, error) {
	var out []string
	for _, e := range es {
		s, err := in.text(e)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
