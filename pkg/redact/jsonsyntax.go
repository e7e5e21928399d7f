// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// maxNesting is how deep JSON may be nested. It is the limit of encoding/json.
const maxNesting = 10000

// checker checks the syntax of JSON, by the rules of json.Valid and several times as fast. Each of its methods starts at
// i, moves i to after what it has checked, and reports whether that was valid.
type checker struct {
	s string
	i int
	// spaced is set when there is white space between values.
	spaced bool
}

// validJSON reports whether s is one JSON value, and whether it has white space between its values.
func validJSON(s string) (valid, spaced bool) {
	c := checker{s: s}
	if !c.value(1) {
		return false, false
	}
	c.space()
	return c.i == len(s), c.spaced
}

// isJSON reports whether s is one JSON value.
func isJSON(s string) bool {
	valid, _ := validJSON(s)
	return valid
}

func (c *checker) space() {
	for c.i < len(c.s) && (c.s[c.i] == ' ' || c.s[c.i] == '\n' || c.s[c.i] == '\t' || c.s[c.i] == '\r') {
		c.spaced = true
		c.i++
	}
}

// next skips white space and returns the byte at i, or 0 at the end.
func (c *checker) next() byte {
	c.space()
	if c.i == len(c.s) {
		return 0
	}
	return c.s[c.i]
}

func (c *checker) value(depth int) bool {
	switch first := c.next(); first {
	case '"':
		return c.str()
	case '{', '[':
		return depth <= maxNesting && c.list(first == '{', depth)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

// list checks an object or an array.
func (c *checker) list(object bool, depth int) bool {
	last := byte(']')
	if object {
		last = '}'
	}
	c.i++
	if c.next() == last {
		c.i++
		return true
	}
	for {
		if object {
			if c.next() != '"' || !c.str() || c.next() != ':' {
				return false
			}
			c.i++
		}
		if !c.value(depth + 1) {
			return false
		}
		switch c.next() {
		case ',':
			c.i++
		case last:
			c.i++
			return true
		default:
			return false
		}
	}
}

func (c *checker) word(w string) bool {
	if !strings.HasPrefix(c.s[c.i:], w) {
		return false
	}
	c.i += len(w)
	return true
}

func (c *checker) str() bool {
	for c.i = plainEnd(c.s, c.i+1); c.i < len(c.s); c.i = plainEnd(c.s, c.i) {
		switch {
		case c.s[c.i] == '"':
			c.i++
			return true
		case c.s[c.i] != '\\' || c.i+1 == len(c.s):
			return false
		case c.s[c.i+1] == 'u':
			if c.i+6 > len(c.s) || !all(c.s[c.i+2:c.i+6], hex) {
				return false
			}
			c.i += 6
		case strings.IndexByte(`"\/bfnrt`, c.s[c.i+1]) >= 0:
			c.i += 2
		default:
			return false
		}
	}
	return false
}

func (c *checker) number() bool {
	at := func(b byte) bool { return c.i < len(c.s) && c.s[c.i] == b }
	digits := func() bool {
		from := c.i
		c.i = run(c.s, c.i, digit)
		return c.i > from
	}
	if at('-') {
		c.i++
	}
	if at('0') {
		c.i++
	} else if !digits() {
		return false
	}
	if at('.') {
		if c.i++; !digits() {
			return false
		}
	}
	if at('e') || at('E') {
		c.i++
		if at('+') || at('-') {
			c.i++
		}
		return digits()
	}
	return true
}

// plainEnd returns the position of the next quote, backslash or control character from i on, or the end of s. It looks at
// eight bytes at a time.
func plainEnd(s string, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		v := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		q, b := v^ones*'"', v^ones*'\\'
		if ((v-ones*' ')&^v|(q-ones)&^q|(b-ones)&^b)&tops != 0 {
			break // one of the eight, or a byte after it, is such a character
		}
	}
	for i < len(s) && s[i] != '"' && s[i] != '\\' && s[i] >= ' ' {
		i++
	}
	return i
}
