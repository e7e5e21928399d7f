// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"unicode/utf8"
)

// scan finds the members of a JSON object, in one pass after the text was found to be valid. It does not look into values.
func scan(data []byte) (*object, error) {
	if !json.Valid(data) {
		return nil, invalidObject(data)
	}
	s := scanner{data: data}
	s.space()
	if s.data[s.at] != '{' {
		return nil, errNoObject
	}
	s.at++
	o := &object{data: data, open: s.at, members: make([]member, 0, 8)}
	for begin := s.at; ; {
		s.space()
		switch s.data[s.at] {
		case '}':
			return o, nil
		case ',':
			s.at++
			continue
		}
		name := s.text()
		s.space()
		s.at++ // the colon
		s.space()
		start := s.at
		s.value()
		o.members = append(o.members, member{name: name, begin: begin, start: start, end: s.at})
		begin = s.at
	}
}

// invalidObject returns what is wrong with a body.
func invalidObject(data []byte) error {
	var first json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if dec.Decode(&first) == nil && len(first) > 0 && first[0] == '{' {
		return errors.New("the body must be one JSON object")
	}
	return errNoObject
}

// scanner reads valid JSON.
type scanner struct {
	data []byte
	at   int
}

// space skips white space.
func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// text reads a string.
func (s *scanner) text() string {
	start := s.at
	s.skipText()
	return unquoted(s.data[start:s.at])
}

// skipText skips a string.
func (s *scanner) skipText() {
	for s.at++; s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// value skips a value.
func (s *scanner) value() {
	for depth := 0; s.at < len(s.data); {
		switch s.data[s.at] {
		case '"':
			s.skipText()
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			depth--
			s.at++
		case ',', ':', ' ', '\t', '\n', '\r':
			s.at++
			continue
		default:
			s.scalar()
		}
		if depth == 0 {
			return
		}
	}
}

// scalar skips a number, true, false or null.
func (s *scanner) scalar() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ',', ':', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		s.at++
	}
}

// unquoted returns the value of a string.
func unquoted(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	if !slices.Contains(inner, '\\') && utf8.Valid(inner) {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is a valid string
	return text
}

// simple reads a value of the types that most members have, as json.Unmarshal would. It reports false if the value must be
// read by that function.
func simple(raw []byte, into any) bool {
	switch into := into.(type) {
	case *string:
		if raw[0] != '"' {
			return false
		}
		*into = unquoted(raw)
		return true
	case *bool:
		if raw[0] != 't' && raw[0] != 'f' {
			return false
		}
		*into = raw[0] == 't'
		return true
	case *int64:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return false
		}
		*into = n
		return true
	case **int64:
		n, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return false
		}
		*into = &n
		return true
	}
	return false
}
