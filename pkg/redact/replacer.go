// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
)

// maxStride is how many positions of a text share one look, at most.
const maxStride = 4

// replacer replaces each of a set of values by the marker. The values have two bytes or more. It is meant for text in
// which few of them occur: a few positions cost one look at a table of pairs of bytes.
type replacer struct {
	// stride is how many positions share a look: the values have a pair at each of as many positions.
	stride int
	pairs  pairSet
	// of holds the values by the sum of their first two bytes, longer ones first.
	of [256][]string
}

func replacerOf(values []string) *replacer {
	values = slices.SortedStableFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	r := &replacer{stride: maxStride}
	if n := len(values); n > 0 {
		r.stride = min(maxStride, len(values[n-1])-1)
	}
	for _, v := range values {
		for i := range r.stride {
			r.pairs.add(v[i], v[i+1])
		}
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

// ending returns where the first value that starts from low to high starts, and its length; 0 if none does.
func (r *replacer) ending(s string, low, high int) (from, n int) {
	for from = low; from <= high; from++ {
		if n = r.at(s[from:]); n > 0 {
			return from, n
		}
	}
	return from, 0
}

// replace returns s without the values.
func (r *replacer) replace(s string) string {
	var out strings.Builder
	done := 0
	for i := 0; i+1 < len(s); {
		if r.pairs.has(s[i], s[i+1]) {
			if from, n := r.ending(s, max(done, i+1-r.stride), i); n > 0 {
				out.WriteString(s[done:from])
				out.WriteString(Marker)
				done = from + n
				i = done
				continue
			}
		}
		i += r.stride
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}
