// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
	"github.com/platform-ai/platform/pkg/sse"
)

// success describes the answer of a row.
func (b *builder) success(r rest.Row) (object, error) {
	a := r.Answer
	code := cmp.Or(a.Code, a.Passes, http.StatusOK)
	response := object{"description": http.StatusText(code)}
	out := object{strconv.Itoa(code): response}
	switch {
	case a.Code == http.StatusNoContent || a.Passes != 0:
		return out, nil
	case a.Document:
		response["content"] = content("application/json", object{"type": "object"})
		return out, nil
	case a.Media == sse.ContentType:
		response["content"] = stream()
		return out, nil
	case a.Media != "":
		response["content"] = content(a.Media, object{"type": "string", "format": "binary"})
		return out, nil
	}
	schema, err := b.answer(r)
	if err != nil {
		return nil, err
	}
	response["content"] = content("application/json", schema)
	if a.OKIf != "" {
		out[strconv.Itoa(http.StatusOK)] = response
	}
	return out, nil
}

// kindOf returns the definition of a native answer.
func (b *builder) kindOf(n rest.Native) (string, error) {
	if n.Ask != "" && b.Kinds[n.Verb+" "+n.Resource()] == "" {
		return b.types.kind(n.Ask)
	}
	kind := cmp.Or(b.Kinds[n.Verb+" "+n.Resource()], b.Kinds[n.Resource()])
	if kind == "" {
		return "", fmt.Errorf("the kind of %s %s is not listed", n.Verb, n.Resource())
	}
	if n.Verb == "list" {
		kind += "List"
	}
	return b.types.kind(kind)
}

// answer returns the schema of a JSON answer.
func (b *builder) answer(r rest.Row) (any, error) {
	a := r.Answer
	if a.Fields == nil {
		name, err := b.kindOf(r.Native[len(r.Native)-1])
		if err != nil {
			return nil, err
		}
		if len(a.Drop) == 0 {
			return b.types.refer(name), nil
		}
		members, required, err := b.types.properties(name)
		if err != nil {
			return nil, err
		}
		for _, drop := range a.Drop {
			delete(members, drop)
			required = slices.DeleteFunc(slices.Clone(required), func(s string) bool { return s == drop })
		}
		return objectOf(members, required), nil
	}
	members, required, err := b.fields(r.Native, a.Fields)
	if err != nil {
		return nil, err
	}
	if a.Bare {
		return members[a.Fields[0].Name], nil
	}
	if a.Of != "" {
		return b.extended(r, members, required)
	}
	return objectOf(members, required), nil
}

// extended returns the schema of a native answer with further members.
func (b *builder) extended(r rest.Row, members object, required []string) (any, error) {
	i := slices.IndexFunc(r.Native, func(n rest.Native) bool { return n.Name == r.Answer.Of })
	name, err := b.kindOf(r.Native[i])
	if err != nil {
		return nil, err
	}
	base, needed, err := b.types.properties(name)
	if err != nil {
		return nil, err
	}
	maps.Copy(members, base)
	if !r.Native[i].Optional {
		required = append(required, needed...)
	}
	return objectOf(members, required), nil
}

func objectOf(members object, required []string) object {
	o := object{"type": "object", "properties": members}
	if len(required) > 0 {
		slices.Sort(required)
		o["required"] = slices.Compact(required)
	}
	return o
}

// fields returns the members that rows make of native answers. Those with a default are always present.
func (b *builder) fields(natives []rest.Native, fields []rest.Field) (object, []string, error) {
	return b.members(fields, func(path string) (spec.Schema, error) {
		first, below, _ := strings.Cut(path, ".")
		if first == "request" {
			return *spec.StringProperty(), nil
		}
		i := slices.IndexFunc(natives, func(n rest.Native) bool { return n.Name != "" && n.Name == first })
		if i < 0 { // of the last request without a name
			below = path
			for j, n := range natives {
				if n.Name == "" {
					i = j
				}
			}
		}
		if i < 0 {
			return spec.Schema{}, fmt.Errorf("no native answer has %s", path)
		}
		if natives[i].Text {
			return *spec.StringProperty(), nil
		}
		name, err := b.kindOf(natives[i])
		if err != nil {
			return spec.Schema{}, err
		}
		return b.types.at(name, below)
	})
}

// members returns the schemas of fields whose paths find resolves.
func (b *builder) members(fields []rest.Field, find func(path string) (spec.Schema, error)) (object, []string, error) {
	out := object{}
	var required []string
	for _, f := range fields {
		s, err := b.field(f, find)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if f.Default == "null" {
			s = object{"anyOf": []any{s, object{"type": "null"}}}
		}
		if f.Default != "" {
			required = append(required, f.Name)
		}
		out[f.Name] = s
	}
	return out, required, nil
}

func (b *builder) field(f rest.Field, find func(path string) (spec.Schema, error)) (object, error) {
	if f.Type != "" {
		return typed(f.Type), nil
	}
	if len(f.From) == 0 {
		return ofValue(f.Default), nil
	}
	of, err := find(f.From[0])
	if err != nil {
		return nil, err
	}
	fields := f.Only
	if f.Each != nil {
		fields = f.Each
		of = b.types.resolve(of)
		if of.Items == nil || of.Items.Schema == nil {
			return nil, fmt.Errorf("%s is not a list", f.From[0])
		}
		of = *of.Items.Schema
	}
	if fields == nil {
		return b.types.convert(of)
	}
	definition := name(of)
	if definition == "" {
		return nil, fmt.Errorf("%s is not of a named type", f.From[0])
	}
	members, required, err := b.members(fields, func(path string) (spec.Schema, error) { return b.types.at(definition, path) })
	if err != nil {
		return nil, err
	}
	o := objectOf(members, required)
	if f.Each != nil {
		return object{"type": "array", "items": o}, nil
	}
	return o, nil
}

// typed returns the schema of Field.Type.
func typed(t string) object {
	if t == "date-time" {
		return object{"type": "string", "format": t}
	}
	return object{"type": strings.Split(t, "|")}
}

// ofValue returns the schema of a constant.
func ofValue(text string) object {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // rows have valid JSON
	switch v := v.(type) {
	case bool:
		return object{"type": "boolean", "const": v}
	case object:
		return object{"type": "object"}
	default:
		return object{}
	}
}
