// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// assignment matches "key=value", "key: value", "key := value", "key => value"
// and header lines; the separator is at i.
func (x *scanner) assignment(i int) int {
	s := x.s
	ks, ke := x.keyBefore(i)
	if ks == ke {
		return 0
	}
	if ke-ks > len("stringData") && nothingAt(s, run(s, i+1, blank)) {
		return 0 // a value that was removed before, under a key that structure does not know
	}
	kind := x.keyKindAt(ks, ke)
	if kind == notSecret {
		if ks, kind = x.keyBeside(ks, ke, i); kind == notSecret {
			return x.structure(ks, ke, i)
		}
	}
	j, quotedOnly := separator(s, i)
	if j < 0 {
		return 0
	}
	k := run(s, j, blank)
	if nothingAt(s, k) {
		return 0
	}
	if kind >= secretCount && kind != secretPass {
		if end, done := x.wide(kind, ks, ke, i, k); done {
			return end
		}
		if ends(s, k) {
			return 0
		}
	}
	if ke == i && x.endsString(ks, k) {
		return 0 // "password="+name
	}
	v, ok := x.valueAfter(i, k, quotedOnly)
	if !ok {
		return 0
	}
	key, text := s[ks:ke], s[v.from:v.to]
	if kind < secretCount && !suspicious(kind, key, text) {
		to := signsEnd(s, v)
		if to == v.to || !suspicious(kind, key, s[v.from:to]) {
			return x.structure(ks, ke, i)
		}
		v.to, text = to, s[v.from:to]
	}
	if x.exempt(kind, key, text, v.from == k) || kind >= secretCount && x.notAValue(kind, place{ks, ke, i, v.from, v.to}) {
		return 0
	}
	return x.remove(v.from, v.to)
}

// valueAfter returns the value at k of the separator at i. One without quotes may follow ":=" if it looks like a key, and
// "==" if it also stands next to it: KEY= and a key that begins with an equals sign.
func (x *scanner) valueAfter(i, k int, quotedOnly bool) (v span, ok bool) {
	v, ok = x.value(i, k, quotedOnly)
	if !ok && quotedOnly && (x.s[i] == ':' || x.s[k-1] == '=') {
		v, ok = x.value(i, k, false)
		ok = ok && keyLike(x.s[v.from:v.to]) // not name := expression
	}
	if ok && !quotedAt(x.s, v.from) && connection(x.s[max(0, i-keyLimit):i]) {
		for v.to < len(x.s) && !is(x.s[v.to], blank|lineEnd) && !isQuote(x.s[v.to]) {
			v.to++
		}
	}
	return v, ok
}

// connection reports whether a text ends in the name of a connection string, which has semicolons.
func connection(text string) bool {
	text = strings.TrimRight(text, " \t\"'")
	if text == "" || text[len(text)-1]|0x20 != 'g' {
		return false
	}
	text = strings.ToLower(text)
	return strings.HasSuffix(text, "string") && strings.HasSuffix(strings.TrimRight(strings.TrimSuffix(text, "string"), "-_. "), "connection")
}

// signsEnd returns the end of an unquoted value that goes on after & or ;, as passwords do, and not as the parameters of a
// query or the statements of a line.
func signsEnd(s string, v span) int {
	if v.to >= len(s) || s[v.to] != '&' && s[v.to] != ';' || quotedAt(s, v.from) {
		return v.to
	}
	to := v.to
	for to < len(s) && !is(s[to], blank|lineEnd) && !isQuote(s[to]) && s[to] != ',' {
		to++
	}
	rest := strings.TrimRight(s[v.to:to], "=")
	if len(rest) < 8 || strings.ContainsAny(rest, "=({[\\") || strings.HasPrefix(rest, "&amp;") {
		return v.to
	}
	if at := strings.IndexAny(rest, ")}]"); at >= 0 && (at+1 == len(rest) || !is(rest[at+1], alnum) || strings.Contains(rest, "&&")) {
		return v.to // code closes what it opened before the key
	}
	return to
}

// endsString reports whether the quote at k ends the string that began before the key at ks.
func (x *scanner) endsString(ks, k int) bool {
	s := x.s
	q, n := quoteAt(s, k)
	return n == 1 && ks > 0 && s[ks-1] == q && (k+1 == len(s) || strings.IndexByte("+,.);]}& \t\n", s[k+1]) >= 0)
}

// nothingAt reports whether s ends at k, or the line after the marker at k.
func nothingAt(s string, k int) bool {
	end := k + len(Marker)
	return k >= len(s) || s[k] == Marker[0] && strings.HasPrefix(s[k:], Marker) && (end == len(s) || is(s[end], lineEnd))
}

// ends reports whether the quote at k is the end of a string that an expression continues: "password: " + name.
func ends(s string, k int) bool {
	if _, n := quoteAt(s, k); n != 1 {
		return false
	}
	next := run(s, k+1, blank)
	return next < len(s) && (s[next] == '+' && next > k+1 || s[next] == ')' || s[next] == ',' && next == k+1 && next+1 < len(s) && is(s[next+1], blank))
}

// wide handles values that extend beyond a single value on the line of the key s[ks:ke]: the rest of a
// header line, a list, and the lines below. The separator is at i and the text after it at k. done reports
// whether it was one of these.
func (x *scanner) wide(kind secretKind, ks, ke, i, k int) (end int, done bool) {
	s := x.s
	list := s[k] == '[' || s[k] == '{'
	if kind == secretHeader && s[i] == ':' && (i+1 == len(s) || s[i+1] != '=') {
		quotedKey := ke < i && !is(s[ke], blank)
		if _, n := quoteAt(s, k); !quotedKey || n == 0 && !list {
			return x.header(ks, k), true
		}
	}
	if list && !strings.HasPrefix(s[k:], Marker) {
		return x.array(k), true
	}
	if s[i] == ':' && (lineEndAt(s, k, true) > 0 || blockScalar(s, k)) {
		return x.below(ks, k), true
	}
	return 0, false
}

// keyBefore returns the key that ends before the separator at i. Blanks, quotes, a closing bracket and a
// terminal colour code may stand between the two. An empty range means that there is no key.
func (x *scanner) keyBefore(i int) (from, to int) {
	s, low := x.s, max(x.done, i-24)
	to = i
	if to > low && (s[to-1] == '?' || s[to-1] == '+') && s[i] == '=' {
		to--
	}
	for to > low && is(s[to-1], blank) {
		to--
	}
	if to > low && s[to-1] == 'm' {
		to = max(low, colourBefore(s, to))
	}
	if to > low && s[to-1] == ']' {
		to--
	}
	if to > low && isQuote(s[to-1]) {
		to--
		for to > low && s[to-1] == '\\' {
			to--
		}
	}
	from = x.back(to, keyLimit+1, keyByte)
	if start := x.foreign(from, to); start < from {
		return start, to
	}
	if to-from > keyLimit || from > 0 && s[from-1] == '+' && !lineStart(s, from-1) {
		return to, to // too long for a name, or the end of base64
	}
	if from > 0 && from < to && s[from-1] == '\\' && strings.IndexByte("nrt", s[from]) >= 0 {
		from++ // skip the letter of an escape
	}
	return from, to
}

// foreign returns the start of the word of foreignNames that ends at to and of which from is the start of the last part in
// ASCII, or from if there is none.
func (x *scanner) foreign(from, to int) int {
	s := x.s
	if from == x.done || from == 0 || s[from-1] < 0x80 {
		return from
	}
	start := from
	for low := max(x.done, to-keyLimit); start > low && (s[start-1] >= 0x80 || is(s[start-1], keyByte)); start-- {
	}
	if !foreignName(s[start:to]) {
		return from
	}
	return start
}

// fullwidth matches the full-width colon of Chinese and Japanese at i, after a word for a password.
func (x *scanner) fullwidth(i int) int {
	const colon = "："
	s := x.s
	if !strings.HasPrefix(s[i:], colon) || x.foreign(i, i) == i {
		return 0
	}
	v, ok := x.value(i, run(s, i+len(colon), blank), false)
	if !ok || x.exempt(secretValue, "", s[v.from:v.to], false) {
		return 0
	}
	return x.remove(v.from, v.to)
}

// keyKindAt classifies the key s[from:to]. If the key is just "key", it includes the word before it:
// "private key: …".
func (x *scanner) keyKindAt(from, to int) secretKind {
	s := x.s
	if to-from == len("passe") && strings.EqualFold(s[from:to], "passe") && from >= len("mot de ")+x.done && strings.EqualFold(s[from-len("mot de "):from], "mot de ") {
		return secretValue
	}
	if to-from == 3 && strings.EqualFold(s[from:to], "key") && from > x.done+1 && is(s[from-1], blank) {
		from = x.back(from-1, keyLimit, keyByte)
	} else if to-from == 3 && strings.EqualFold(s[from:to], "key") {
		return secretRandom
	}
	return keyKind(s[from:to])
}

// keyBeside classifies the separator at i if the word before it does not name a secret, by what is next to
// that word: a word before brackets, as in "Secret Access Key [None]: …", or the previous member, as in
// name: API_KEY, value: ….
func (x *scanner) keyBeside(ks, ke, i int) (int, secretKind) {
	s := x.s
	if ks > x.done+1 && s[ks-1] == '[' && ke < i && s[ke] == ']' {
		to := ks - 1
		for to > x.done && is(s[to-1], blank) {
			to--
		}
		if from := x.back(to, keyLimit, keyByte); from < to {
			if kind := x.keyKindAt(from, to); kind == secretValue {
				return from, kind
			}
		}
	}
	if x.named >= 0 && ks-x.named < 80 && strings.EqualFold(s[ks:ke], "value") && apart(s, x.named, ks) {
		return ks, x.namedKind
	}
	return ks, notSecret
}

// apart reports whether s[from:to] contains no word.
func apart(s string, from, to int) bool {
	for from < to {
		if next := white(s, from); next > from {
			from = next
			continue
		}
		if s[from] >= 0x80 || is(s[from], alnum) {
			return false
		}
		from++
	}
	return true
}

// separator returns the start of the value of the separator at i. quotedOnly reports whether only a quoted
// value counts, because the code compares or declares. It returns a negative number if the byte at i does
// not separate a key from a value.
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

// exempt reports whether v, found under key, is not a secret. bare is set for a value without quotes.
func (x *scanner) exempt(kind secretKind, key, v string, bare bool) bool {
	switch {
	case v == Marker, len(v) < 10 && harmless[strings.ToLower(v)], placeholder(v):
		return true
	case (kind == secretCount || kind == secretPass) && isNumber(strings.Trim(v, "["+closers)):
		return true
	case (key == "PWD" || key == "OLDPWD") && v[0] == '/':
		return true // the shell's working directory
	case v[0] == '/' && strings.Count(v, "/") > 2 && strings.Trim(v, "abcdefghijklmnopqrstuvwxyz./-") == "":
		return true // the path of a file
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
