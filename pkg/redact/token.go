// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// prefixed matches a known prefix whose last mark is at i.
func (x *scanner) prefixed(i int) int {
	if i == 0 {
		return 0
	}
	s := x.s
	mark := markOf(s[i])
	if i > 1 && !markEnds[mark].has(s[i-2], s[i-1]) {
		return 0
	}
	for _, p := range marks[mark][s[i-1]] {
		from := i + 1 - p.anchor
		if from < x.done || !strings.HasPrefix(s[from:], p.prefix) || !x.boundary(from) {
			continue
		}
		if end := x.token(from, from+len(p.prefix), p); end != 0 {
			return end
		}
	}
	return 0
}

// starts reports whether a known prefix starts at i.
func (x *scanner) starts(i int) bool {
	if i+1 == len(x.s) || !startPairs.has(x.s[i], x.s[i+1]) {
		return false
	}
	for _, p := range starts[x.s[i]] {
		if strings.HasPrefix(x.s[i:], p.prefix) && x.boundary(i) {
			return true
		}
	}
	return false
}

// started matches a known prefix that starts at i.
func (x *scanner) started(i int) int {
	s := x.s
	for _, p := range starts[s[i]] {
		if !strings.HasPrefix(s[i:], p.prefix) || !x.boundary(i) {
			continue
		}
		if x.inBlob(i, p.of) {
			continue
		}
		end := x.token(i, i+len(p.prefix), p)
		if end == 0 {
			continue
		}
		if p.of == capital { // AKIA…:secret
			if to := run(s, min(end+1, len(s)), base64Byte); to-end == 41 && s[end] == ':' {
				return x.remove(i, to)
			}
		}
		return end
	}
	return 0
}

// short matches a known prefix at the start of the word before the mark at i, if that word is too short for words.
func (x *scanner) short(i int) int {
	from := x.back(i, shortest, alnum)
	if from < i && from > x.done && x.s[from-1] == '+' {
		if end := x.sum(from); end > i {
			return end
		}
	}
	if i-from < 3 || i-from == shortest || !shortStarts.has(x.s[from], x.s[from+1]) {
		return 0
	}
	if end := x.started(from); end > i {
		return end
	}
	return 0
}

// inBlob reports whether the word at i is more likely a piece of base64.
func (x *scanner) inBlob(i int, of class) bool {
	s := x.s
	if i == x.done || i == 0 || i < x.urlStop || s[i-1] != '+' && s[i-1] != '/' || s[i-1] == '+' && lineStart(s, i-1) {
		return false
	}
	to := run(s, i, of&^base64Byte|alnum)
	return to < len(s) && is(s[to], base64Byte) || !irregular(s[i:to])
}

// joinable is how many characters of a token must precede a line break for the text after the break to
// count as a part of it.
const joinable = 4

// token removes the token of form p that starts at from and whose prefix ends before body, if it has the
// required length.
func (x *scanner) token(from, body int, p *known) int {
	s := x.s
	to := run(s, body, p.of)
	if len(p.rest) > 0 {
		return x.sequence(from, body, to, p)
	}
	for to > body && (s[to-1] == '.' || s[to-1] == '/') {
		to--
	}
	n := to - body
	if p.alone && (n != p.full || !random(s[from:to])) {
		return 0
	}
	if n >= joinable && (p.full == 0 || n < p.full) {
		to, n = joined(s, to, n, p)
	}
	if n < p.min || p.min == p.full && n > p.full && !is('-', p.of) || to < len(s) && is(s[to], alnum) {
		return 0
	}
	return x.remove(from, run(s, to, wordByte))
}

// sequence removes the token of form p that starts at from and whose first run is s[body:to], if its other parts follow.
func (x *scanner) sequence(from, body, to int, p *known) int {
	s := x.s
	if n := to - body; n < p.min || p.full > 0 && n > p.full {
		return 0
	}
	for _, part := range p.rest {
		if !strings.HasPrefix(s[to:], part.literal) {
			return 0
		}
		start := to + len(part.literal)
		to = run(s, start, part.of)
		if n := to - start; n < part.least || part.most > 0 && n > part.most {
			return 0
		}
	}
	if to < len(s) && is(s[to], alnum) {
		return 0
	}
	return x.remove(from, to)
}

// body removes the token that starts at from, in a word that ends at end, if a form without a prefix describes it.
func (x *scanner) body(from, end int) int {
	s := x.s
	for _, p := range bodies {
		to := from + p.min
		if to > end || !strings.HasPrefix(s[to:], p.rest[0].literal) {
			continue
		}
		if next := x.sequence(from, from, to, p); next != 0 {
			return next
		}
	}
	return 0
}

// sum removes the token of a form with a plus before the word at k.
func (x *scanner) sum(k int) int {
	s := x.s
	for _, p := range sums {
		if from := k - len(p.prefix); p.prefix != "" {
			if from >= x.done && s[from:k] == p.prefix && x.boundary(from) {
				if end := x.token(from, k, p); end != 0 {
					return end
				}
			}
			continue
		}
		from := k - 1 - p.min
		if from < x.done || !strings.HasPrefix(s[k-1:], p.rest[0].literal) || !all(s[from:k-1], p.of) || from > 0 && is(s[from-1], p.of) {
			continue
		}
		if end := x.sequence(from, from, k-1, p); end != 0 {
			return end
		}
	}
	return 0
}

// joined extends a token that ends at to, with n characters after its prefix, by the text after a line
// break that belongs to it.
func joined(s string, to, n int, p *known) (end, length int) {
	for range 64 {
		next := afterBreak(s, to)
		if next < 0 {
			break
		}
		stop := run(s, next, p.of)
		missing := 0
		if p.full > 0 {
			missing = p.full - n
		}
		if !continues(s, next, stop, missing) {
			break
		}
		to, n = stop, n+stop-next
		if p.full > 0 && n >= p.full {
			break
		}
	}
	return to, n
}

// afterBreak returns the position at which a token that stops at i continues if it was wrapped: after a
// line end with or without a backslash, a quotation mark in the margin and indentation, or in the next
// string of a concatenation. It returns a negative number if nothing indicates that.
func afterBreak(s string, i int) int {
	k, broken := i, false
	quote, n := quoteAt(s, k)
	if n > 0 {
		k = run(s, k+n, blank)
		if k < len(s) && strings.IndexByte("+.&", s[k]) >= 0 {
			k, broken = k+1, true
		}
	}
	k = run(s, k, blank)
	if k+1 < len(s) && s[k] == '\\' && is(s[k+1], lineEnd) {
		k++
	}
	switch {
	case k < len(s) && is(s[k], lineEnd):
		if strings.HasPrefix(s[k:], "\r\n") {
			k++
		}
		k++
	case n != 1 && strings.HasPrefix(s[k:], `\r\n`):
		k += 4
	case n != 1 && strings.HasPrefix(s[k:], `\n`):
		k += 2
	case !broken:
		return -1
	}
	for k = run(s, k, blank); n > 1 && strings.HasPrefix(s[k:], `\t`); k = run(s, k, blank) {
		k += 2
	}
	if k < len(s) && (strings.IndexByte(">|#", s[k]) >= 0 && n == 0 || strings.IndexByte("+.&", s[k]) >= 0 && n > 0) {
		k = run(s, k+1, blank)
	}
	if n > 0 {
		q, m := quoteAt(s, k)
		if m != n || q != quote {
			return -1
		}
		k += m
	}
	if k >= len(s) {
		return -1
	}
	return k
}

// continues reports whether s[from:to], after a line break, looks like the rest of a token that lacks
// missing characters.
func continues(s string, from, to, missing int) bool {
	n := to - from
	if n == 0 || missing > 0 && n > missing {
		return false
	}
	least := joinable
	if to < len(s) {
		switch c := s[to]; {
		case is(c, alnum) || strings.IndexByte("=:(/@[{", c) >= 0:
			return false
		case (c == '.' || c == '-' || c == '_') && to+1 < len(s) && is(s[to+1], alnum):
			return false
		case is(c, blank) && n != missing:
			least = 8 // it may be an ordinary word
		}
	}
	return n == missing || n >= least && irregular(s[from:to])
}

// irregular reports whether v is not a plain word: it mixes letters with digits, or has a capital after a
// small letter.
func irregular(v string) bool {
	letters, digits, mixed := false, false, false
	for i := range len(v) {
		switch c := v[i]; {
		case is(c, digit):
			digits = true
		case is(c, capital):
			letters = true
			mixed = mixed || i > 0 && v[i-1] >= 'a' && v[i-1] <= 'z'
		case is(c, alnum):
			letters = true
		}
	}
	return letters && digits || mixed
}

// words examines the long words in s[from:to], which contains no mark, for prefixes without a mark and for
// encoded text. It returns the position at which the scan continues.
func (x *scanner) words(from, to int) int {
	s := x.s
	k := from
	for k < to {
		if last := k + shortest - 1; last < len(s) && !is(s[last], alnum) {
			k = min(last+1, to) // no word that starts before that is long enough
			continue
		}
		if !is(s[k], alnum) {
			k++
			continue
		}
		end := run(s, k, alnum)
		if end-k >= shortest && (k > from || x.boundary(k)) {
			if next := x.word(k, end); next > k {
				k = next
				continue
			}
		}
		k = end
	}
	return max(k, to)
}

// word examines the word s[k:end].
func (x *scanner) word(k, end int) int {
	s := x.s
	if k > x.done && s[k-1] == '+' {
		if next := x.sum(k); next != 0 {
			return next
		}
	}
	first := x.afterEscape(k)
	for _, from := range [...]int{first, k} {
		if startPairs.has(s[from], s[from+1]) {
			if next := x.started(from); next != 0 {
				return next
			}
		}
	}
	if next := x.body(first, end); next != 0 {
		return next
	}
	if first >= x.encodedStop {
		return x.encoded(first)
	}
	return 0
}

// afterEscape returns the start of the word at k after skipping the rest of an escape whose letters were
// taken for a part of the word, or k if there is none.
func (x *scanner) afterEscape(k int) int {
	s := x.s
	if k == 0 || strings.IndexByte(`\%[;`, s[k-1]) < 0 {
		return k
	}
	for first := k + 1; first < min(k+6, len(s)) && is(s[first-1], alnum); first++ {
		if x.boundary(first) {
			return first
		}
	}
	return k
}
