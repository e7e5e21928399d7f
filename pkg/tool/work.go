// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSteps bounds how many parts of a schema are applied to one value, and maxWork how many are in all when arguments are
	// checked: about a second. Schemas with references can be small and need more than any computer has.
	maxSteps = 10_000
	maxWork  = 1_000_000
)

var (
	errEndless  = errors.New("a reference of the schema leads to itself without an end")
	errTooMuch  = fmt.Errorf("the schema applies more than %d rules to one value once its references are followed", maxSteps)
	errTooLarge = InvalidArguments("the arguments are too large or too deep to be checked against the tool's parameters").Suggest("call it with less")
)

// references reports whether a compiled schema has references. Without them the time of a check grows with the schema and the
// arguments, not with their powers.
func references(root *jsonschema.Schema) bool {
	found := false
	reachable(root, func(s *jsonschema.Schema) {
		found = found || s.Ref != nil || s.DynamicRef != nil || s.RecursiveRef != nil
	})
	return found
}

// reachable calls f once with each schema that a check may apply.
func reachable(root *jsonschema.Schema, f func(*jsonschema.Schema)) {
	seen := map[*jsonschema.Schema]bool{}
	next := []*jsonschema.Schema{root}
	add := func(s *jsonschema.Schema) {
		if s != nil && !seen[s] {
			seen[s] = true
			next = append(next, s)
		}
	}
	for len(next) > 0 {
		s := next[len(next)-1]
		next = next[:len(next)-1]
		f(s)
		here(s, add)
		below(s, add)
	}
}

// here calls f with the parts of a schema that apply to the value to which it applies.
func here(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	for _, one := range []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else} {
		f(one)
	}
	if s.DynamicRef != nil {
		f(s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, one := range list {
			f(one)
		}
	}
	for _, one := range s.DependentSchemas {
		f(one)
	}
	for _, one := range s.Dependencies {
		single(one, f)
	}
}

// below calls f with the parts of a schema that apply to members and elements of the value.
func below(s *jsonschema.Schema, f func(*jsonschema.Schema)) {
	for _, one := range s.Properties {
		f(one)
	}
	for _, one := range s.PatternProperties {
		f(one)
	}
	for _, one := range s.PrefixItems {
		f(one)
	}
	for _, one := range []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema} {
		f(one)
	}
	for _, one := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		single(one, f)
	}
}

// single calls f with the schema or the schemas that a keyword of more than one type holds.
func single(v any, f func(*jsonschema.Schema)) {
	switch v := v.(type) {
	case *jsonschema.Schema:
		f(v)
	case []*jsonschema.Schema:
		for _, one := range v {
			f(one)
		}
	}
}

// steps returns an error for a schema that could not be checked against any value that reaches all of it.
func steps(root *jsonschema.Schema) error {
	const open = -1
	count := map[*jsonschema.Schema]int{}
	var of func(s *jsonschema.Schema) (int, error)
	of = func(s *jsonschema.Schema) (int, error) {
		switch n := count[s]; {
		case n == open:
			return 0, errEndless
		case n > 0:
			return n, nil
		}
		count[s] = open
		sum, err := 1, error(nil)
		here(s, func(part *jsonschema.Schema) {
			if part == nil || err != nil {
				return
			}
			var n int
			if n, err = of(part); err == nil {
				if sum += n; sum > maxSteps {
					err = errTooMuch
				}
			}
		})
		count[s] = sum
		return sum, err
	}
	var err error
	reachable(root, func(s *jsonschema.Schema) {
		if err == nil {
			_, err = of(s)
		}
	})
	return err
}

// work counts how often parts of a schema are applied to values when arguments are checked.
type work struct {
	counted map[application]int
	next    int // the number of the next value
}

// application is a part of a schema at a value. A value is known by its number.
type application struct {
	schema *jsonschema.Schema
	value  int
}

// value is a JSON value whose parts are numbered.
type value struct {
	number   int
	members  map[string]*value
	elements []*value
	list     bool
}

func (w *work) numbered(v any) *value {
	w.next++
	out := &value{number: w.next}
	switch v := v.(type) {
	case map[string]any:
		out.members = make(map[string]*value, len(v))
		for name, member := range v {
			out.members[name] = w.numbered(member)
		}
	case []any:
		out.list = true
		for _, element := range v {
			out.elements = append(out.elements, w.numbered(element))
		}
	}
	return out
}

// bounded reports whether a check of a value takes at most maxWork applications.
func bounded(s *jsonschema.Schema, v any) bool {
	w := &work{counted: map[application]int{}}
	return w.of(s, w.numbered(v)) <= maxWork
}

// of returns the applications of a schema at a value and below, or more than maxWork. It counts each part, though a check may end
// before. Each pair is looked at once, and there are not more pairs than applications.
func (w *work) of(s *jsonschema.Schema, v *value) int {
	at := application{s, v.number}
	if n, ok := w.counted[at]; ok {
		return n
	}
	if len(w.counted) > maxWork {
		return maxWork + 1
	}
	w.counted[at] = 1 // steps has found that there is no way back to here
	sum := 1
	add := func(v *value) func(*jsonschema.Schema) {
		return func(part *jsonschema.Schema) {
			if part != nil && sum <= maxWork {
				sum += w.of(part, v)
			}
		}
	}
	here(s, add(v))
	for name, member := range v.members {
		f := add(member)
		f(s.Properties[name])
		for pattern, part := range s.PatternProperties {
			if pattern.MatchString(name) {
				f(part)
			}
		}
		f(s.UnevaluatedProperties)
		f(s.PropertyNames)
		single(s.AdditionalProperties, f)
	}
	for i, element := range v.elements {
		f := add(element)
		if i < len(s.PrefixItems) {
			f(s.PrefixItems[i])
		}
		if list, ok := s.Items.([]*jsonschema.Schema); !ok {
			single(s.Items, f)
		} else if i < len(list) {
			f(list[i])
		}
		f(s.Items2020)
		f(s.Contains)
		f(s.UnevaluatedItems)
		single(s.AdditionalItems, f)
	}
	w.counted[at] = sum
	return sum
}
