// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// span is a value found after a key: s[from:to] would be removed.
type span struct{ from, to int }

// value finds the value that starts at k, in quotes or not.
func (x *scanner) value(i, k int, quotedOnly bool) (span, bool) {
	s := x.s
	for k < len(s) && (s[k] == '(' || is(s[k], blank)) {
		k++
	}
	if k+1 < len(s) && isQuote(s[k+1]) && strings.IndexByte("bBrRfFuU@", s[k]) >= 0 {
		k++ // a string literal with a prefix
	}
	k = colourAfter(s, k)
	if k+1 < len(s) && s[k] == '\\' && is(s[k+1], lineEnd) {
		k = run(s, k+1, lineEnd|blank)
	}
	if q, n := quoteAt(s, k); n > 0 {
		to := quotedEnd(s, k+n, q, n)
		return span{k + n, to}, to > k+n
	}
	if quotedOnly || k >= len(s) || s[k] == '{' {
		return span{}, false
	}
	to := unquotedEnd(s, k)
	if x.cut > i && to > x.cut {
		to = x.cut // the query that follows is removed as a whole
	}
	if schemeWord(s[k:to]) {
		if next := run(s, to, blank); next > to && next < len(s) {
			to = unquotedEnd(s, next)
		}
	}
	v := s[k:to]
	if strings.HasPrefix(v, Marker) && strings.Trim(v[len(Marker):], closers) == "" {
		return span{}, false
	}
	if s[k] == '<' && strings.HasSuffix(v, ">") {
		return span{k, to}, true // a placeholder, whole
	}
	if wrapped := wrappedEnd(s, k, to); wrapped > to {
		return span{k, wrapped}, true
	}
	if strings.HasSuffix(v, "):") {
		v = v[:len(v)-1] // f(token: Token): Result
	}
	v = strings.TrimRight(v, closers)
	return span{k, k + len(v)}, v != ""
}

// closers are trimmed from the end of an unquoted value, because they close something opened before the
// key.
const closers = ")]}>.*"

// unquotedEnd returns the end of the unquoted value at k: a blank, a quote, a
// list separator or an escaped line end or quote.
func unquotedEnd(s string, k int) int {
	for k < len(s) && !is(s[k], valueEnd) {
		if s[k] == '\\' && k+1 < len(s) && strings.IndexByte(`nrt"'`, s[k+1]) >= 0 {
			break
		}
		k++
	}
	return k
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quoteAt returns the quote at k and its length: 1, more if it is escaped once or several times, or 0 if
// there is none.
func quoteAt(s string, k int) (q byte, n int) {
	if k < len(s) && isQuote(s[k]) {
		return s[k], 1
	}
	if k >= len(s) || s[k] != '\\' {
		return 0, 0
	}
	for n = 1; n < 8 && k+n < len(s); n++ {
		if c := s[k+n]; isQuote(c) {
			return c, n + 1
		} else if c != '\\' {
			break
		}
	}
	return 0, 0
}

// closing returns the end of the string that starts at k: the position before its quote, which has the
// length n, or the end of the line.
func closing(s string, k int, q byte, n int) int {
	escapes := 0 // backslashes before k
	for ; k < len(s) && !is(s[k], lineEnd); k++ {
		switch {
		case s[k] == q && n == 1:
			return k
		case s[k] == q && escapes < n:
			return k - escapes
		case s[k] != '\\':
			escapes = 0
		case n == 1 && q != '`':
			k++
		default:
			escapes++
		}
	}
	return min(k, len(s))
}

// quotedEnd is closing for a value. It also continues past the line end if the quote closes right after one
// word on the next line, and over the further strings of a concatenation.
func quotedEnd(s string, k int, q byte, n int) int {
	to := closing(s, k, q, n)
	for range 64 {
		if to >= len(s) {
			break
		}
		if is(s[to], lineEnd) {
			word := run(s, to, lineEnd|blank)
			end := unquotedEnd(s, word)
			if quote, m := quoteAt(s, end); word == end || quote != q || m != n {
				break
			}
			to = end
			continue
		}
		next := afterBreak(s, to)
		if next < 0 {
			break
		}
		end := closing(s, next, q, n)
		behind := run(s, min(end+n, len(s)), blank)
		if behind < len(s) && strings.IndexByte(":=", s[behind]) >= 0 {
			break // a key
		}
		to = end
	}
	return to
}

// wrappedEnd returns the end of the unquoted value s[from:to] including the further lines that belong to
// it: lines after a backslash, and lines that consist of one long mixture of letters and digits, as the
// value itself does.
func wrappedEnd(s string, from, to int) int {
	for range 64 {
		if to > from && to < len(s) && s[to-1] == '\\' && is(s[to], lineEnd) {
			next := run(s, to, lineEnd|blank)
			to = unquotedEnd(s, next)
			continue
		}
		if to-from < 16 || to >= len(s) || isQuote(s[to]) {
			break
		}
		next := afterBreak(s, to)
		if next < 0 {
			break
		}
		end := run(s, next, tokenByte)
		alone := end == len(s) || is(s[end], lineEnd) || isQuote(s[end]) || s[end] == '\\'
		if end-next < 8 || !alone || !irregular(s[from:to]) || !continues(s, next, end, 0) {
			break
		}
		to = end
	}
	return to
}

// schemeWord reports whether v names an authentication scheme, so that the
// secret is the word after it.
func schemeWord(v string) bool {
	switch len(v) {
	case 5, 6, 9:
		if strings.IndexByte("btdan", v[0]|0x20) < 0 {
			return false
		}
		return strings.EqualFold(v, "basic") || strings.EqualFold(v, "token") ||
			strings.EqualFold(v, "bearer") || strings.EqualFold(v, "digest") || strings.EqualFold(v, "apikey") ||
			strings.EqualFold(v, "negotiate")
	}
	return false
}
