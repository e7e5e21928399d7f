// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// goesOn reports whether the expression of the identifier v goes on after to.
func goesOn(s, v string, to int) bool {
	if to >= len(s) {
		return false
	}
	switch c := s[to]; {
	case c == '(' || c == '[' || c == '<' && to+1 < len(s) && is(s[to+1], alnum):
		return len(v) > 1
	case !is(c, blank):
		return false
	}
	k := run(s, to, blank)
	if k >= len(s) {
		return false
	}
	for _, op := range [...]string{"+ ", "|| ", "&& ", "?? ", "? ", "| ", "{", "(", "= ", "=> ", "or ", "and ", "if ", "else ", "//", "/*"} {
		if strings.HasPrefix(s[k:], op) {
			return true
		}
	}
	return false
}

// closes reports whether what follows an expression in code stands at k: a bracket or a semicolon, or a comma at the end
// of the line.
func closes(s string, k int) bool {
	if k >= len(s) {
		return false
	}
	switch s[k] {
	case ';', ')', '}', ']':
		return true
	case ' ':
		return k+1 < len(s) && s[k+1] == '}'
	case ',':
		return k+1 == len(s) || lineEndAt(s, k+1, true) > 0 || keyKind(wordBefore(s, k)) >= secretCount
	}
	return false
}

// wordBefore returns the word that ends before k.
func wordBefore(s string, k int) string {
	from := k
	for from > 0 && k-from < keyLimit && is(s[from-1], keyByte) {
		from--
	}
	return s[from:k]
}

// sentence reports whether a word without a separator follows on the line, as in prose.
func sentence(s string, k int) bool {
	next := run(s, k, blank)
	end := run(s, next, alnum)
	if next == k || end == next || is(s[next], digit) {
		return false
	}
	after := run(s, run(s, end, wordByte), blank)
	return after >= len(s) || s[after] != ':' && s[after] != '='
}

// commented reports whether the line of i is a comment of a program.
func commented(s string, i int) bool {
	from := i
	for low := max(0, i-64); from > low && !is(s[from-1], lineEnd); from-- {
	}
	from = run(s, from, blank)
	return strings.HasPrefix(s[from:], "//") || strings.HasPrefix(s[from:], "* ")
}
