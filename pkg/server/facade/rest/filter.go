// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"io"
)

// filter copies a JSON document without some of its members. It holds no more than a key and one write in memory. It
// can leave out members of the document itself and of the objects directly in it. The input must be valid JSON.
type filter struct {
	w    io.Writer
	drop map[string]bool // "kind", "metadata.resourceVersion"
	out  []byte          // of the current write

	depth    int               // open objects and arrays
	object   [watched + 1]bool // whether the one at that depth is an object
	kept     [watched + 1]bool // whether a member of it was written
	member   string            // of the document, being read
	wantsKey bool              // the next string is a key
	key      []byte            // the key being read, with its quotes; empty when none is
	skipping int               // the depth of the object whose current member is left out; 0 if none is
	inString bool
	escaped  bool
}

// watched is the depth down to which members can be left out.
const watched = 2

// newFilter makes a filter that leaves out the members with these paths.
func newFilter(w io.Writer, members ...string) *filter {
	f := &filter{w: w, drop: map[string]bool{}}
	for _, m := range members {
		f.drop[m] = true
	}
	return f
}

// Write takes the next part of the document.
func (f *filter) Write(p []byte) (int, error) {
	f.out = f.out[:0]
	for rest := p; len(rest) > 0; rest = rest[1:] {
		if f.inString && !f.wantsKey && !f.escaped { // text passes in one piece
			n := plainText(rest)
			if f.skipping == 0 {
				f.out = append(f.out, rest[:n]...)
			}
			if rest = rest[n:]; len(rest) == 0 {
				break
			}
		}
		f.next(rest[0])
	}
	if _, err := f.w.Write(f.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainText returns how many bytes of b precede a quote or backslash.
func plainText(b []byte) int {
	if i := bytes.IndexByte(b, '"'); i >= 0 {
		b = b[:i]
	}
	if i := bytes.IndexByte(b, '\\'); i >= 0 {
		return i
	}
	return len(b)
}

func (f *filter) next(b byte) {
	inObject := f.depth > 0 && f.depth <= watched && f.object[f.depth]
	switch {
	case f.inString:
		f.text(b)
	case b == '"':
		f.inString = true
		if f.wantsKey {
			f.key = append(f.key, b)
		} else {
			f.emit(b)
		}
	case b == ':' && len(f.key) > 0:
		f.begin()
	case b == ',' && inObject && (f.skipping == 0 || f.skipping == f.depth):
		f.skipping, f.wantsKey = 0, true // the comma is written with the next member that is kept
	case b == '{' || b == '[':
		f.emit(b)
		f.depth++
		if f.depth <= watched {
			f.object[f.depth], f.kept[f.depth] = b == '{', false
			f.wantsKey = b == '{' && f.skipping == 0
		}
	case b == '}' || b == ']':
		if f.skipping == f.depth {
			f.skipping = 0
		}
		f.depth--
		f.wantsKey = false
		f.emit(b)
	default:
		f.emit(b)
	}
}

// text processes one byte of a string.
func (f *filter) text(b byte) {
	if f.wantsKey {
		f.key = append(f.key, b)
	} else {
		f.emit(b)
	}
	switch {
	case f.escaped:
		f.escaped = false
	case b == '\\':
		f.escaped = true
	case b == '"':
		f.inString = false
	}
}

// begin decides whether to keep the member whose key was read.
func (f *filter) begin() {
	path := string(f.key[1 : len(f.key)-1])
	if f.depth == 1 {
		f.member = path
	} else {
		path = f.member + "." + path
	}
	f.wantsKey = false
	if f.drop[path] {
		f.skipping = f.depth
	} else {
		if f.kept[f.depth] {
			f.emit(',')
		}
		f.kept[f.depth] = true
		f.out = append(append(f.out, f.key...), ':')
	}
	f.key = f.key[:0]
}

func (f *filter) emit(b byte) {
	if f.skipping == 0 {
		f.out = append(f.out, b)
	}
}
