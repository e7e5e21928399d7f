// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
)

// JSON is Remove for one JSON value, which stays one: it removes values from the texts of strings, and what has values that are
// not in one string, as a whole. Input that is not JSON is treated as text.
func (k Known) JSON(s string) string {
	if k.k == nil {
		return s
	}
	if !isJSON(s) {
		return k.Remove(s)
	}
	out := eachScalar(s, func(from, to int) string {
		token := s[from:to]
		if token[0] == '"' {
			text := unquote(token)
			if clean := k.Remove(text); clean != text {
				return quote(clean)
			}
		} else if k.Remove(token) != token {
			return quotedMarker
		}
		return token
	})
	parts, _ := k.k.found(out, false)
	if len(parts) == 0 {
		return out
	}
	eachScalar(out, func(from, to int) string {
		parts = slices.DeleteFunc(parts, func(p part) bool { return p.from > from && p.to < to })
		return out[from:to]
	})
	if len(parts) > 0 {
		return quotedMarker
	}
	return out
}

// eachScalar returns valid JSON with what change returns in place of each string, number and word s[from:to].
func eachScalar(s string, change func(from, to int) string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		end := i + 1
		switch c := s[i]; {
		case c == '"':
			c := checker{s: s, i: i}
			c.str()
			end = c.i
		case c == '-' || is(c, alnum):
			for end < len(s) && is(s[end], tokenByte) {
				end++
			}
		default:
			i++
			continue
		}
		if changed := change(i, end); changed != s[i:end] {
			b.WriteString(s[done:i])
			b.WriteString(changed)
			done = end
		}
		i = end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}
