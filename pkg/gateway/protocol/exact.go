// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// exact refuses what encoding/json lets pass although two readers may understand it differently: a member that is there twice, or whose name
// is written in another case.
func exact(raw []byte, v any) error {
	return members(json.NewDecoder(bytes.NewReader(raw)), reflect.TypeOf(v), maxDepth)
}

// maxDepth bounds how deep values are in each other. The protocol needs three.
const maxDepth = 16

// members reads one value, of a type that is known or nil.
func members(d *json.Decoder, t reflect.Type, depth int) error {
	if depth == 0 {
		return errors.New("its values are too deep in each other")
	}
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('['):
		for d.More() {
			if err := members(d, nil, depth-1); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return fmt.Errorf("it is not JSON: %w", err)
			}
			key, _ := name.(string) // names are strings
			if seen[key] {
				return fmt.Errorf("the member %q is there twice", key)
			}
			seen[key] = true
			of, known := member(t, key)
			if !known {
				return fmt.Errorf("unknown field %q", key)
			}
			if err := members(d, of, depth-1); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = d.Token() // the end
	return err
}

// member returns the type of a member of an object, and whether there is such a member; anything is in what is no struct.
func member(t reflect.Type, name string) (reflect.Type, bool) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, true
	}
	for f := range t.Fields() {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Type, true
		}
	}
	return nil, false
}
