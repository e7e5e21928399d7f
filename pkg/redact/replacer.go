// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"math/bits"
	"slices"
	"strings"
)

const (
	// gramBytes is how many bytes of a text one look compares. Pairs of bytes would not do: a few hexadecimal keys have all pairs
	// of digits.
	gramBytes = 4
	// maxStride is how many positions of a text share one look, at most.
	maxStride = minSeen + 1 - gramBytes
)

// replacer replaces each of a set of values by the marker. The values have gramBytes or more. It is meant for text in which few
// of them occur: a few positions cost one look at a table.
type replacer struct {
	// stride is how many positions share a look: the values have grams at each of as many positions.
	stride int
	grams  gramSet
	// of holds the values by the sum of their first two bytes, longer ones first.
	of [256][]string
}

// gramSet is a set of grams. What it has is in it, and a few others whose hashes are equal are, too.
type gramSet struct {
	bits  []uint64
	shift uint // of a hash, to the number of a bit
}

// sparse is how many bits a set has for each gram, at least.
const sparse = 64

func gramSetOf(n int) gramSet {
	size := max(12, bits.Len(uint(n*sparse)))
	return gramSet{make([]uint64, 1<<(size-6)), uint(32 - size)}
}

func (g *gramSet) add(hash uint32) {
	at := hash >> g.shift
	g.bits[at>>6] |= 1 << (at & 63)
}

func (g *gramSet) has(hash uint32) bool {
	at := hash >> (g.shift & 31)
	return g.bits[at>>6]>>(at&63)&1 != 0
}

// gram returns a hash of the first gramBytes of s, whose upper bits count (Fibonacci hashing).
func gram(s string) uint32 {
	_ = s[gramBytes-1]
	return (uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24) * 0x9E3779B1
}

func replacerOf(values []string) *replacer {
	values = slices.SortedStableFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	r := &replacer{stride: maxStride}
	if n := len(values); n > 0 {
		r.stride = min(maxStride, len(values[n-1])+1-gramBytes)
	}
	r.grams = gramSetOf(len(values) * r.stride)
	for _, v := range values {
		for i := range r.stride {
			r.grams.add(gram(v[i:]))
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
	for i := 0; i+gramBytes <= len(s); {
		if r.grams.has(gram(s[i:])) {
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
