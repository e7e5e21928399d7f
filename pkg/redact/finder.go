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

// finder finds each of a set of values in a text. The values have gramBytes or more. It is meant for text in which few of them
// occur: a few positions cost one look at a table.
type finder struct {
	// stride is how many positions share a look: the values have grams at each of as many positions.
	stride int
	grams  gramSet
	values []string
	// of holds the positions of values by the hash of their first gram, longer values first.
	of map[uint32][]int32
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

func finderOf(values []string) *finder {
	values = slices.SortedStableFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	f := &finder{stride: maxStride, values: values, of: make(map[uint32][]int32, len(values))}
	if n := len(values); n > 0 {
		f.stride = min(maxStride, len(values[n-1])+1-gramBytes)
	}
	f.grams = gramSetOf(len(values) * f.stride)
	for i, v := range values {
		for j := range f.stride {
			f.grams.add(gram(v[j:]))
		}
		f.of[gram(v)] = append(f.of[gram(v)], int32(i))
	}
	return f
}

// at returns the longest value that starts s, or "".
func (f *finder) at(s string) string {
	for _, i := range f.of[gram(s)] {
		if v := f.values[i]; strings.HasPrefix(s, v) {
			return v
		}
	}
	return ""
}

// next returns the first value in s from done on, and where it is: the longest of those that start there. It returns "" for
// none.
func (f *finder) next(s string, done int) (from int, v string) {
	for i := done; i+gramBytes <= len(s); i += f.stride {
		if !f.grams.has(gram(s[i:])) {
			continue
		}
		for from = max(done, i+1-f.stride); from <= i; from++ {
			if v = f.at(s[from:]); v != "" {
				return from, v
			}
		}
	}
	return len(s), ""
}

// replace returns s with the marker in place of each value.
func (f *finder) replace(s string) string {
	var out strings.Builder
	done := 0
	for from, v := f.next(s, 0); v != ""; from, v = f.next(s, done) {
		out.WriteString(s[done:from])
		out.WriteString(Marker)
		done = from + len(v)
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}
