// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// span is a value found after a key: s[from:to] is what would go.
type span struct{ from, to int }

// assignment matches "key=value", "key: value", "key := value", "key => value"
// and header lines; the separator is at i.
func (x *scanner) assignment(i int) int {
	s := x.s
	ks, ke := x.keyBefore(i)
	if ks == ke {
		return 0
	}
	kind := x.keyKindAt(ks, ke)
	if kind == notSecret {
		return 0
	}
	j, quotedOnly := separator(s, i)
	if j < 0 {
		return 0
	}
	k := run(s, j, blank)
	if k >= len(s) {
		return 0
	}
	if kind == secretHeader && s[i] == ':' {
		quotedKey := ke < i && !is(s[ke], blank)
		if _, n := quoteAt(s, k); !quotedKey || (n == 0 && s[k] != '[') {
			return x.header(ks, k)
		}
	}
	if s[k] == '[' && !strings.HasPrefix(s[k:], Marker) {
		return x.array(k + 1)
	}
	v, ok := x.value(i, k, quotedOnly)
	if !ok || x.exempt(kind, s[ks:ke], s[v.from:v.to], v.from == k) {
		return 0
	}
	return x.remove(v.from, v.to)
}

// keyBefore returns the key that ends before the separator at i, over blanks,
// quotes and a closing bracket between the two; an empty key is none.
func (x *scanner) keyBefore(i int) (from, to int) {
	s, low := x.s, max(x.done, i-8)
	to = i
	if to > low && (s[to-1] == '?' || s[to-1] == '+') && s[i] == '=' {
		to--
	}
	for to > low && is(s[to-1], blank) {
		to--
	}
	if to > low && s[to-1] == ']' {
		to--
	}
	if to > low && isQuote(s[to-1]) {
		to--
		if to > low && s[to-1] == '\\' {
			to--
		}
	}
	from = x.back(to, keyLimit+1, keyByte)
	if to-from > keyLimit || from > 0 && s[from-1] == '+' {
		return to, to // too long for a name, or the end of base64
	}
	return from, to
}

// keyKindAt classifies the key s[from:to]. A lone "key" takes the word before
// it in: "private key: …".
func (x *scanner) keyKindAt(from, to int) secretKind {
	s := x.s
	if to-from == 3 && strings.EqualFold(s[from:to], "key") && from > x.done+1 && is(s[from-1], blank) {
		from = x.back(from-1, keyLimit, keyByte)
	}
	return keyKind(s[from:to])
}

// separator returns where the value of the separator at i starts, and whether
// only a quoted value counts because the code compares or declares. It returns
// a negative number for what separates no key from a value.
func separator(s string, i int) (next int, quotedOnly bool) {
	j := i + 1
	at := func(c byte) bool { return j < len(s) && s[j] == c }
	if s[i] == ':' {
		switch {
		case at(':'), i > 0 && s[i-1] == ':':
			return -1, false
		case at('='):
			return j + 1, true
		}
		return j, false
	}
	switch {
	case at('='):
		for at('=') {
			j++
		}
		return j, true
	case at('~'):
		return j + 1, true
	case at('>'):
		return j + 1, false
	}
	return j, false
}

// value finds the value that starts at k, in quotes or not.
func (x *scanner) value(i, k int, quotedOnly bool) (span, bool) {
	s := x.s
	for k < len(s) && (s[k] == '(' || is(s[k], blank)) {
		k++
	}
	if k+1 < len(s) && isQuote(s[k+1]) && strings.IndexByte("bBrRfFuU@", s[k]) >= 0 {
		k++ // a string literal with a prefix
	}
	if q, n := quoteAt(s, k); n > 0 {
		to := closing(s, k+n, q, n == 2)
		return span{k + n, to}, to > k+n
	}
	if quotedOnly || k >= len(s) || s[k] == '{' {
		return span{}, false
	}
	to := unquotedEnd(s, k)
	if x.cut > i && to > x.cut {
		to = x.cut // the query that follows goes as a whole
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
	v = strings.TrimRight(v, closers)
	return span{k, k + len(v)}, v != ""
}

// closers are trimmed from the end of an unquoted value: they close what stood
// before the key.
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

// exempt reports whether v, found under key, is no secret. bare is set for a
// value without quotes.
func (x *scanner) exempt(kind secretKind, key, v string, bare bool) bool {
	switch {
	case v == Marker, harmless[strings.ToLower(v[:min(len(v), 16)])], placeholder(v):
		return true
	case kind == secretCount:
		return isNumber(strings.TrimRight(v, closers))
	case (key == "PWD" || key == "OLDPWD") && v[0] == '/':
		return true // the shell's working directory
	}
	return bare && isCall(v)
}

// isCall reports whether v is the start of a call in source code: name(…).
func isCall(v string) bool {
	open := strings.IndexByte(v, '(')
	if open < 2 || v[0] >= '0' && v[0] <= '9' {
		return false
	}
	for i := range open {
		if c := v[i]; !is(c, alnum) && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// array removes the strings of a list that starts after its bracket at k.
func (x *scanner) array(k int) int {
	s := x.s
	end := 0
	for {
		k = run(s, k, blank)
		q, n := quoteAt(s, k)
		if n == 0 {
			return end
		}
		to := closing(s, k+n, q, n == 2)
		if to > k+n {
			x.remove(k+n, to)
		}
		end = min(to+n, len(s))
		k = run(s, end, blank)
		if k >= len(s) || s[k] != ',' {
			return end
		}
		k++
	}
}

// header removes the value of a header line that starts at k; its key starts
// at ks. It ends with the line, or with the quote that opened before the key.
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
	if scheme, rest, found := strings.Cut(v, " "); found && schemeWord(scheme) && placeholder(rest) {
		return 0
	}
	return x.remove(k, to)
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quoteAt returns the quote at k and its length: 1, 2 when it is escaped, or 0
// when there is none.
func quoteAt(s string, k int) (q byte, n int) {
	switch {
	case k < len(s) && isQuote(s[k]):
		return s[k], 1
	case k+1 < len(s) && s[k] == '\\' && isQuote(s[k+1]):
		return s[k+1], 2
	}
	return 0, 0
}

// closing returns where the string that starts at k ends: before its quote, or
// at the end of the line.
func closing(s string, k int, q byte, escaped bool) int {
	for ; k < len(s) && s[k] != '\n' && s[k] != '\r'; k++ {
		switch {
		case escaped && s[k] == '\\' && k+1 < len(s) && s[k+1] == q:
			return k
		case escaped && s[k] == q:
			return k
		case !escaped && s[k] == '\\' && q != '`':
			k++
		case !escaped && s[k] == q:
			return k
		}
	}
	return min(k, len(s))
}

// schemeWord reports whether v names an authentication scheme, so that the
// secret is the word after it.
func schemeWord(v string) bool {
	switch len(v) {
	case 5, 6, 9:
		return strings.EqualFold(v, "basic") || strings.EqualFold(v, "token") ||
			strings.EqualFold(v, "bearer") || strings.EqualFold(v, "digest") || strings.EqualFold(v, "apikey") ||
			strings.EqualFold(v, "negotiate")
	}
	return false
}
