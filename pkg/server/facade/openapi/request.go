// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

func (b *builder) pathParameters(r rest.Row) []object {
	params := []object{}
	for s := range strings.SplitSeq(r.Path, "/") {
		name, ok := strings.CutPrefix(s, ":")
		if !ok {
			continue
		}
		schema := object{"type": "string", "minLength": 1}
		if only := b.Parameters[name].Only; only != "" {
			schema["enum"] = []string{only}
		}
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	return params
}

// parameters describes all parameters of a row.
func (b *builder) parameters(r rest.Row) ([]object, error) {
	params := b.pathParameters(r)
	query := map[string]object{}
	add := func(name string, p rest.Parameter) { query[name] = parameter(name, p) }
	if named(r) && !strings.Contains(r.Path, ":namespace") {
		add("namespace", rest.Parameter{Type: "string", Text: "Default: the caller's own namespace, or default."})
	}
	for _, n := range r.Native {
		if err := b.passed(n, query); err != nil {
			return nil, err
		}
	}
	for _, name := range r.Ignored {
		if p, ok := b.Parameters[name]; ok {
			add(name, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		params = append(params, query[name])
	}
	if r.Body != nil {
		for _, name := range slices.Sorted(maps.Keys(r.Body.Headers)) {
			params = append(params, object{"name": name, "in": "header", "schema": object{"type": "string"}})
		}
	}
	return params, nil
}

// passed adds the parameters of a native request to those of its row.
func (b *builder) passed(n rest.Native, query map[string]object) error {
	add := func(name string, p rest.Parameter) { query[name] = parameter(name, p) }
	if n.Page {
		addPage(n.Unlimited, add)
	}
	for _, p := range n.Asked() {
		add(p.Name, p)
	}
	for _, name := range n.Pass {
		p, ok := b.Parameters[name]
		if !ok {
			return fmt.Errorf("the parameter %s is not described", name)
		}
		if _, twice := query[name]; !twice {
			add(name, p)
		}
	}
	return nil
}

// addPage adds the parameters of a paged list.
func addPage(unlimited bool, add func(name string, p rest.Parameter)) {
	least := 1
	if unlimited {
		least = 0
	}
	add("limit", rest.Parameter{Type: "integer", Least: least, Text: "How many items a page has: 100 by default, 500 at most; a larger number is lowered. Where 0 is allowed, it means all."})
	add("continue", rest.Parameter{Type: "string", Text: "metadata.continue of the page before."})
}

// parameter describes a query parameter.
func parameter(name string, p rest.Parameter) object {
	schema := object{"type": p.Type}
	if p.Type == "integer" {
		schema["minimum"] = p.Least
	}
	if p.Repeated {
		schema = object{"type": "array", "items": schema}
	}
	o := object{"name": name, "in": "query", "schema": schema}
	if p.Repeated {
		o["explode"], o["style"] = true, "form"
	}
	if p.Text != "" {
		o["description"] = p.Text
	}
	return o
}

// body describes the body of a request.
func (b *builder) body(r rest.Row) (object, error) {
	body := r.Body
	out := object{"required": !body.Optional, "description": fmt.Sprintf("At most %d bytes.", body.Max)}
	if body.Raw {
		out["content"] = content("*/*", object{"type": "string", "format": "binary"})
		return out, nil
	}
	schema, err := b.bodySchema(r)
	if err != nil {
		return nil, err
	}
	out["content"] = content("application/json", schema)
	return out, nil
}

func (b *builder) bodySchema(r rest.Row) (object, error) {
	body := r.Body
	if body.Members != nil {
		return objectOf(structMembers(body.Members), slices.Clone(body.Required)), nil
	}
	kind, err := b.types.kind(body.Kind)
	if err != nil {
		return nil, err
	}
	if body.Flat {
		return b.flat(kind, body)
	}
	definition := kind
	if body.Under != "" {
		s, err := b.types.at(kind, body.Under)
		if err != nil {
			return nil, err
		}
		definition = name(s)
	}
	members, required, err := b.types.properties(definition)
	if err != nil {
		return nil, err
	}
	if r.Merges() || body.Under == "" {
		required = nil
	}
	for _, header := range body.Headers {
		delete(members, header)
	}
	for _, member := range slices.Concat(body.Same, body.Also) {
		members[member] = object{"type": "string"}
	}
	return objectOf(members, slices.Concat(required, body.Required)), nil
}

// flat describes the three forms of an object.
func (b *builder) flat(kind string, body *rest.Body) (object, error) {
	s, err := b.types.at(kind, "spec")
	if err != nil {
		return nil, err
	}
	meta := object{
		"name": object{"type": "string"}, "namespace": object{"type": "string"},
		"labels":      object{"type": "object", "additionalProperties": object{"type": "string"}},
		"annotations": object{"type": "object", "additionalProperties": object{"type": "string"}},
	}
	var required []string
	if body.Replace == "" {
		required = []string{"name"}
	}
	nested := maps.Clone(meta)
	nested["spec"] = b.types.refer(name(s))
	return object{"anyOf": []any{
		b.types.refer(kind), objectOf(nested, append([]string{"spec"}, required...)),
		object{"allOf": []any{b.types.refer(name(s)), objectOf(meta, required)}},
	}}, nil
}

// structMembers describes the fields of a struct of texts, numbers and booleans.
func structMembers(of any) object {
	out := object{}
	t := reflect.TypeOf(of)
	for f := range t.Fields() {
		kind := "string"
		switch f.Type.Kind() {
		case reflect.Bool:
			kind = "boolean"
		case reflect.Int32, reflect.Int64, reflect.Int:
			kind = "integer"
		case reflect.Slice: // of the bytes of any object
			kind = "object"
		}
		out[strings.Split(f.Tag.Get("json"), ",")[0]] = object{"type": kind}
	}
	return out
}
