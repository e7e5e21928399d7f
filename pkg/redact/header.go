// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// array removes the strings of a list that starts with its bracket at k.
func (x *scanner) array(k int) int {
	s := x.s
	end, object := 0, s[k] == '{'
	for {
		k = white(s, k+1)
		q, n := quoteAt(s, k)
		if n == 0 {
			return end
		}
		from, to := k+n, closing(s, k+n, q, n)
		k = white(s, min(to+n, len(s)))
		if object && end == 0 && (k >= len(s) || s[k] != ',' && s[k] != '}') {
			return 0 // the key of a member
		}
		end = min(to+n, len(s))
		if to > from {
			x.remove(from, to)
		}
		if k >= len(s) || s[k] != ',' {
			return end
		}
	}
}

// header removes the value of a header line; the value starts at k and its key at ks. The value ends with
// the line, or with the quote that was opened before the key.
func (x *scanner) header(ks, k int) int {
	s := x.s
	var open byte
	if ks > 0 && isQuote(s[ks-1]) {
		open = s[ks-1]
	}
	to := k
	for to < len(s) && s[to] != '\n' && s[to] != '\r' && (open == 0 || s[to] != open) {
		if s[to] == '\\' && to+1 < len(s) {
			if c := s[to+1]; c == 'n' || c == 'r' || open != 0 && c == open && ks > 1 && s[ks-2] == '\\' {
				break
			}
			to++
		}
		to++
	}
	to = min(to, len(s))
	for to > k && is(s[to-1], blank) {
		to--
	}
	v := s[k:to]
	if v == "" || v == Marker {
		return 0
	}
	to = wrappedEnd(s, max(k, to-64), to)
	if scheme, rest, found := strings.Cut(v, " "); found && schemeWord(scheme) && (placeholder(rest) || said(rest)) || code(v) || version(v) {
		return 0
	} else if word := strings.TrimRight(scheme, "`\"'.,;)"); schemeWord(word) && (!found || word != scheme && said(rest)) {
		return 0 // a text about the scheme
	}
	return x.remove(k, to)
}

// said reports whether a text is three words or more of a sentence, so that a scheme before it is a word, too.
func said(v string) bool {
	words := 0
	for k := 0; k < len(v) && words < 4; words++ {
		k = run(v, k, blank)
		from := k
		for k < len(v) && !is(v[k], blank) {
			k++
		}
		if word := v[from:k]; !sentenceWord(word) && !schemeWord(word) {
			return false
		}
	}
	return words > 2
}

// sentenceWord reports whether v is a word of small letters, with what sentences have around them.
func sentenceWord(v string) bool {
	for i := range len(v) {
		c := v[i]
		if (c < 'a' || c > 'z') && c != '-' && (is(c, alnum) || strings.IndexByte("`\"'.,;()", c) < 0) {
			return false
		}
	}
	return len(v) <= 17
}

// code reports whether the value of a header is an expression of a program, or what a program fills in.
func code(v string) bool {
	if verb, rest, _ := strings.Cut(v, `"`); verb != "" && verb[0] == '%' && placeholder(verb) && !strings.ContainsAny(rest, "\"'`") {
		return true
	}
	if run(v, 0, wordByte|base64Byte|blank) == len(v) && strings.IndexByte(v, '.') < 0 {
		return false
	}
	whole := v
	v = strings.TrimRight(v, ",;")
	return template(v) || strings.HasPrefix(v, "(new ") || expression(v) && (v != whole || strings.ContainsAny(v, "([{&*!#") || !strangeDots(v))
}
