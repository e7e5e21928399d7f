// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"maps"
	"slices"
)

// Keywords whose values are schemas: one or a list of them, or schemas under names. Values of all others are data.
var (
	schemaKeywords = []string{
		"additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not", "oneOf",
		"prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	namedSchemaKeywords = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// NamesSchemas reports whether the value of a keyword holds schemas under names that the schema chooses.
func NamesSchemas(keyword string) bool { return slices.Contains(namedSchemaKeywords, keyword) }

// subschemas calls f with each schema directly in a schema, by its keyword, and sets what f returns in its place.
func subschemas(schema map[string]any, f func(keyword string, sub any) any) {
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		switch value := schema[key].(type) {
		case map[string]any:
			switch {
			case NamesSchemas(key):
				out := make(map[string]any, len(value))
				for name, sub := range value {
					out[name] = f(key, sub)
				}
				schema[key] = out
			case slices.Contains(schemaKeywords, key):
				schema[key] = f(key, value)
			}
		case []any:
			if slices.Contains(schemaKeywords, key) {
				out := make([]any, 0, len(value))
				for _, sub := range value {
					out = append(out, f(key, sub))
				}
				schema[key] = out
			}
		}
	}
}

// hasUnchecked reports whether a schema has patterns that cannot be checked.
func hasUnchecked(v any) bool {
	schema, ok := v.(map[string]any)
	if !ok {
		return false
	}
	found := false
	if text, ok := schema["pattern"].(string); ok {
		found = isUnchecked(text)
	}
	if named, ok := schema["patternProperties"].(map[string]any); ok {
		for text := range named {
			found = found || isUnchecked(text)
		}
	}
	subschemas(schema, func(_ string, sub any) any {
		found = found || hasUnchecked(sub)
		return sub
	})
	return found
}

func isUnchecked(text string) bool {
	p, err := compilePattern(text)
	_, is := p.(unchecked)
	return err == nil && is
}

// weaker returns a copy of a schema without its patterns that cannot be checked, and whether it accepts the same. What it refuses the
// schema refuses, too: a rule that a weaker part would make stricter is left out.
func weaker(v any) (any, bool) {
	in, ok := v.(map[string]any)
	if !ok {
		return v, true
	}
	w := weakening{schema: maps.Clone(in), exact: true, changed: map[string]bool{}}
	subschemas(w.schema, func(keyword string, sub any) any {
		out, same := weaker(sub)
		w.exact = w.exact && same
		w.changed[keyword] = w.changed[keyword] || !same
		return out
	})
	w.patterns()
	w.rules()
	return w.schema, w.exact
}

// weakening is a schema that is being made weaker.
type weakening struct {
	schema map[string]any
	// exact says that it still accepts the same.
	exact bool
	// changed are the keywords that hold a part that accepts more.
	changed map[string]bool
}

func (w *weakening) drop(keywords ...string) {
	for _, k := range keywords {
		if _, has := w.schema[k]; has {
			w.exact = false
			delete(w.schema, k)
		}
	}
}

// patterns leaves out the patterns of this schema.
func (w *weakening) patterns() {
	if text, ok := w.schema["pattern"].(string); ok && isUnchecked(text) {
		w.drop("pattern")
	}
	named, _ := w.schema["patternProperties"].(map[string]any) // subschemas has made a copy
	for text := range named {
		if isUnchecked(text) {
			delete(named, text)
			w.exact = false
			w.drop("additionalProperties") // it would refuse what the pattern permits
		}
	}
}

// rules leaves out what a part that accepts more would make stricter.
func (w *weakening) rules() {
	if w.changed["not"] {
		w.drop("not")
	}
	if w.changed["if"] {
		w.drop("if", "then", "else")
	}
	if w.changed["oneOf"] { // more than one may fit now
		all, _ := w.schema["allOf"].([]any)
		w.schema["allOf"] = append(slices.Clone(all), map[string]any{"anyOf": w.schema["oneOf"]})
		w.drop("oneOf")
	}
	if w.changed["contains"] {
		w.drop("maxContains")
	}
	w.drop("unevaluatedProperties", "unevaluatedItems") // they depend on which parts fit
	for _, k := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if _, has := w.schema[k]; has {
			w.exact = false // what it refers to may accept more
		}
	}
}
