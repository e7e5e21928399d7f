// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
)

// member is a name, without its quotes, and the JSON of its value.
type member struct{ name, value []byte }

// maxMembers is how many members are examined.
const maxMembers = 64

// membersOf returns the members of an object. At invalid JSON it stops and returns the members before it.
func membersOf(raw []byte) content {
	i := space(raw, 0)
	if !at(raw, i, '{') {
		return nil
	}
	c := make(content, 0, 8)
	for len(c) < maxMembers {
		i = space(raw, i+1)
		end := textEnd(raw, i)
		if end < 0 {
			break
		}
		name := raw[i+1 : end-1]
		if i = space(raw, end); !at(raw, i, ':') {
			break
		}
		i = space(raw, i+1)
		if end = valueEnd(raw, i); end <= i {
			break
		}
		c = append(c, member{name, raw[i:end]})
		if i = space(raw, end); !at(raw, i, ',') {
			break
		}
	}
	return c
}

func at(raw []byte, i int, c byte) bool { return i < len(raw) && raw[i] == c }

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// textEnd returns the index after the text that begins at i, or -1.
func textEnd(raw []byte, i int) int {
	if !at(raw, i, '"') {
		return -1
	}
	for j := i + 1; ; {
		n := bytes.IndexByte(raw[j:], '"')
		if n < 0 {
			return -1
		}
		j += n + 1
		escapes := 0
		for k := j - 2; k > i && raw[k] == '\\'; k-- {
			escapes++
		}
		if escapes%2 == 0 {
			return j
		}
	}
}

// valueEnd returns the index after the value that begins at i, or -1.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			if i = textEnd(raw, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}
