// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonsize counts the values of JSON and how deeply they are nested, without decoding it. Decoding, validating and merging
// cost time for each value, some of it for each pair of values, so the length of a document alone does not bound its price.
package jsonsize

import "fmt"

// Bounds of a JSON document.
type Bounds struct{ Values, Depth int64 }

// Object are the bounds of an object of the API, its managed fields included. Objects of people have some hundred values.
var Object = Bounds{Values: 20_000, Depth: 100}

// String describes the bounds.
func (b Bounds) String() string {
	return fmt.Sprintf("at most %d values (members, entries and elements), nested at most %d deep", b.Values, b.Depth)
}

// Check returns an error if a document exceeds the bounds.
func (b Bounds) Check(doc []byte) error {
	// Each value takes two bytes at least, and each level one.
	if int64(len(doc)) <= min(b.Values, b.Depth) {
		return nil
	}
	var c Counter
	c.Add(doc)
	if c.Exceeds(b) {
		return fmt.Errorf("must have %s; it has %d, nested %d deep", b, c.Values, c.Depth)
	}
	return nil
}

// Counter counts the values of a document as it arrives: each begins the document, or follows a bracket or a comma. Of a
// text that is not JSON it counts something, and whoever decodes it refuses it.
type Counter struct {
	Values int64
	// Depth is the depth of the deepest value.
	Depth int64

	open              int64
	inString, escaped bool
}

// Add takes the next part.
func (c *Counter) Add(part []byte) {
	for i := 0; i < len(part); i++ {
		switch b := part[i]; {
		case c.escaped:
			c.escaped = false
		case c.inString:
			for i < len(part) && part[i] != '"' && part[i] != '\\' {
				i++
			}
			if i == len(part) {
				return
			}
			c.escaped, c.inString = part[i] == '\\', part[i] != '"'
		case b == '"':
			c.inString = true
		case b == ',':
			c.Values++
		case b == '[', b == '{':
			c.Values++
			c.open++
			c.Depth = max(c.Depth, c.open)
		case b == ']', b == '}':
			c.open--
		}
	}
}

// Exceeds reports whether the document exceeds the bounds.
func (c *Counter) Exceeds(b Bounds) bool { return c.Values > b.Values || c.Depth > b.Depth }
