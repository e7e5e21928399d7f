// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// check checks a key of a document. path holds the names of the members around it; elements of a list have the name
// of the list.
type check func(path []string, key string) error

// scan checks what a decoder does not: that there is exactly one JSON value, and that no object has a key twice, in
// which case one would silently win. more, if set, is called for every key. scan takes one pass.
func scan(data []byte, more check) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := scanValue(d, nil, more); err != nil {
		return asBadJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest("the body must be one JSON object")
	}
	return nil
}

func asBadJSON(err error) error {
	if _, ok := asError(err); ok {
		return err
	}
	return badRequest("the body is not JSON: %v", err)
}

func scanValue(d *json.Decoder, path []string, more check) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		for d.More() {
			if err := scanValue(d, path, more); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		if err := scanMembers(d, path, more); err != nil {
			return err
		}
	default:
		return nil
	}
	_, err = d.Token() // the closing bracket
	return err
}

func scanMembers(d *json.Decoder, path []string, more check) error {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return badRequest("%s: is given twice", join(path, key))
		}
		seen[key] = true
		if more != nil {
			if err := more(path, key); err != nil {
				return err
			}
		}
		if err := scanValue(d, append(path, key), more); err != nil {
			return err
		}
	}
	return nil
}

func join(path []string, key string) string {
	return strings.Join(append(slices.Clone(path), key), ".")
}
