// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
)

// replacer replaces each of a set of values by the marker. The values have two bytes or more. It is meant for text in
// which few of them occur: a position costs one look at a table of pairs of bytes.
type replacer struct {
	starts pairSet
	// of holds the values by the sum of their first two bytes, longer ones first.
	of [256][]string
}

func replacerOf(values []string) *replacer {
	values = slices.SortedStableFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	r := &replacer{}
	for _, v := range values {
		r.starts.add(v[0], v[1])
		r.of[v[0]+v[1]] = append(r.of[v[0]+v[1]], v)
	}
	return r
}

// at returns the length of the longest value that starts s, or 0.
func (r *replacer) at(s string) int {
	for _, v := range r.of[s[0]+s[1]] {
		if strings.HasPrefix(s, v) {
			return len(v)
		}
	}
	return 0
}

// replace returns s without the values.
func (r *replacer) replace(s string) string {
	var out strings.Builder
	done := 0
	for i := 0; i+1 < len(s); i++ {
		if !r.starts.has(s[i], s[i+1]) {
			continue
		}
		if n := r.at(s[i:]); n > 0 {
			out.WriteString(s[done:i])
			out.WriteString(Marker)
			done = i + n
			i = done - 1
		}
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}
