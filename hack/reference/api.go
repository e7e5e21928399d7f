// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// rules describes the requirement of each validation tag; %s is its value.
var rules = map[string]string{
	"k8s:maxLength":     "at most %s characters",
	"k8s:maxBytes":      "at most %s bytes",
	"k8s:minimum":       "at least %s",
	"k8s:maximum":       "at most %s",
	"k8s:maxItems":      "at most %s items",
	"k8s:maxProperties": "at most %s entries",
	"k8s:listMapKey":    "each %s once",
	"k8s:immutable":     "cannot be changed",
}

// silent lists tags that are no rule for a user or that appear in another column.
var silent = map[string]bool{
	"k8s:optional": true, "k8s:required": true, "k8s:opaqueType": true, "k8s:listType": true, "k8s:enum": true,
	"k8s:supportsSubresource": true, "k8s:deepcopy-gen:interfaces": true,
}

// formats describes the values of k8s:format.
var formats = map[string]string{
	"k8s-short-name": "a DNS label (RFC 1123): at most 63 of a-z, 0-9 and -",
	"k8s-long-name":  "a DNS subdomain (RFC 1123): at most 253 of a-z, 0-9, - and .",
	"k8s-uuid":       "a UUID (RFC 9562)",
}

// api describes every kind and, once each, the types of its fields.
func api(root string) (string, error) {
	src, err := readSource(filepath.Join(root, apiFolder))
	if err != nil {
		return "", err
	}
	p := &page{}
	p.heading(1, "API: "+v1alpha1.SchemeGroupVersion.String())
	p.text("Every kind with its fields. `kubectl explain` shows the same of a running server. Rules across fields are not in a " +
		"schema; the server's answer names the field and the rule. Fields of `metadata` are those of Kubernetes.")
	a := &apiPage{page: p, src: src, done: map[string]bool{}}
	var kinds []string
	for _, obj := range v1alpha1.KnownTypes() {
		kinds = append(kinds, reflect.TypeOf(obj).Elem().Name())
	}
	for _, kind := range kinds {
		if item, ok := strings.CutSuffix(kind, "List"); ok && slices.Contains(kinds, item) {
			continue // has no content of its own
		}
		if err := a.describe(2, kind); err != nil {
			return "", err
		}
	}
	return p.String(), nil
}

type apiPage struct {
	*page
	src  *source
	done map[string]bool
}

// describe adds a type, then the types of its fields that have not been described.
func (a *apiPage) describe(level int, name string) error {
	t := a.src.types[name]
	if a.done[name] || t == nil {
		return nil
	}
	a.done[name] = true
	a.heading(level, name)
	a.text("%s", prose(unnamed(t.doc, name)))
	if values := a.values(name); values != nil {
		a.table([]string{"Value", "Meaning"}, values)
		return nil
	}
	var rows [][]string
	var next []string
	for _, f := range t.fields {
		if f.json == "" { // TypeMeta
			continue
		}
		row, err := a.row(f)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, f.json, err)
		}
		rows = append(rows, row)
		next = append(next, named(f.expr)...)
	}
	if rows != nil {
		a.table([]string{"Field", "Type", "Required", "Default", "Rules", "Description"}, rows)
	}
	for _, n := range next {
		if err := a.describe(3, n); err != nil {
			return err
		}
	}
	return nil
}

// values returns the constants of a type.
func (a *apiPage) values(typ string) [][]string {
	var rows [][]string
	for _, c := range a.src.consts {
		if c.typ == typ {
			rows = append(rows, []string{code(c.value), prose(describe(c))})
		}
	}
	return rows
}

func (a *apiPage) row(f field) ([]string, error) {
	required, fallback := "", ""
	if has(f.tags, "required", "k8s:required") {
		required = "yes"
	}
	var said []string
	for _, t := range f.tags {
		if t.name == "default" {
			fallback = code(t.value)
		}
		rule, err := ruleOf(t)
		if err != nil {
			return nil, err
		}
		if rule != "" {
			said = append(said, rule)
		}
	}
	for _, n := range named(f.expr) {
		if t := a.src.types[n]; t != nil && has(t.tags, "k8s:enum") {
			said = append(said, "one of the values of "+link(n))
		}
	}
	return []string{code(f.json), a.typeName(f.expr), required, fallback, strings.Join(said, "; "), prose(unnamed(f.doc, f.json))}, nil
}

// ruleOf describes the requirement of a tag; empty if it has none. An unknown validation tag is an error, so that
// none is left out.
func ruleOf(t tag) (string, error) {
	if t.name == "k8s:eachVal" {
		name, value, _ := strings.Cut(strings.TrimPrefix(t.value, "+"), "=")
		rule, err := ruleOf(tag{name, value})
		if rule != "" {
			rule = "each " + rule
		}
		return rule, err
	}
	if t.name == "k8s:format" {
		if s := formats[t.value]; s != "" {
			return s, nil
		}
		return "", fmt.Errorf("no words for format %s", t.value)
	}
	if words := rules[t.name]; words != "" {
		return strings.Replace(words, "%s", code(t.value), 1), nil
	}
	if strings.HasPrefix(t.name, "k8s:") && !silent[t.name] {
		return "", fmt.Errorf("no words for +%s", t.name)
	}
	return "", nil
}

// typeName returns the name of a type in JSON, with a link if it is on this page.
func (a *apiPage) typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return a.typeName(e.X)
	case *ast.ArrayType:
		if id, ok := e.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "base64 string"
		}
		return "list of " + a.typeName(e.Elt)
	case *ast.MapType:
		return "map of " + a.typeName(e.Key) + " to " + a.typeName(e.Value)
	case *ast.SelectorExpr:
		return foreign(e.X.(*ast.Ident).Name + "." + e.Sel.Name)
	case *ast.Ident:
		t := a.src.types[e.Name]
		switch {
		case e.Name == "Duration":
			return "duration, such as 30m"
		case t == nil:
			return simple(e.Name)
		case t.under != "" && a.values(e.Name) == nil:
			return simple(t.under)
		}
		return link(e.Name)
	default:
		return fmt.Sprintf("%T", e)
	}
}

// foreign returns the JSON type of Kubernetes types with a simple JSON form; others keep their name.
func foreign(name string) string {
	switch name {
	case "metav1.Time", "metav1.MicroTime":
		return "time (RFC 3339)"
	case "apiextensionsv1.JSON", "runtime.RawExtension":
		return "any JSON"
	case "types.UID":
		return "string"
	case "resource.Quantity":
		return "quantity, such as 64Mi"
	}
	_, short, _ := strings.Cut(name, ".")
	return "Kubernetes " + code(short)
}

// simple returns the JSON schema name of a basic type.
func simple(name string) string {
	switch {
	case strings.HasPrefix(name, "int"):
		return "integer"
	case strings.HasPrefix(name, "float"):
		return "number"
	case name == "bool":
		return "boolean"
	}
	return name
}

// named returns the types of this package that occur in an expression.
func named(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return named(e.X)
	case *ast.ArrayType:
		return named(e.Elt)
	case *ast.MapType:
		return named(e.Value)
	case *ast.Ident:
		return []string{e.Name}
	default:
		return nil
	}
}

// unnamed returns a comment without the name at its start, which the table shows in another column.
func unnamed(doc, name string) string {
	rest, ok := strings.CutPrefix(doc, name)
	if !ok {
		return doc
	}
	rest = strings.TrimSpace(strings.TrimLeft(rest, ":,"))
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	if rest == "" {
		return ""
	}
	if first, _, _ := strings.Cut(rest, " "); strings.ContainsAny(first, "./") {
		return rest // a path or the name of a field
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// describe returns a constant's comment without its name.
func describe(c constDecl) string { return unnamed(c.doc, c.name) }

func link(name string) string { return "[" + name + "](#" + strings.ToLower(name) + ")" }
