// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/platform-ai/platform/pkg/server/facade/rest"
)

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
