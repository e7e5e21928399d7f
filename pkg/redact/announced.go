// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// lineReach is how far the words before a colon are examined, in bytes.
const lineReach = 160

// announcing are words of a line that ends in a secret: "Unseal Key 1: …", "Use the following password:".
var announcing = [...]string{"password", "passphrase", "unseal key", "recovery key", "api key", "secret key", "access key", "access token", "root token"}

// announced matches a value at the end of a line, or alone below it, if the line says that it is a secret; the colon is
// at i. The value must be one word that cannot be an ordinary one.
func (x *scanner) announced(i int) int {
	s := x.s
	from := run(s, i+1, blank)
	if from == i+1 && lineEndAt(s, from, true) == 0 {
		return 0
	}
	for range 2 { // the value may be below an empty line
		if n := lineEndAt(s, min(from, len(s)), true); n > 0 {
			if from += n; from < len(s) && strings.IndexByte("+>|", s[from]) >= 0 {
				from++ // the margin of a diff or of a quotation
			}
			from = run(s, from, blank)
		}
	}
	to := unquotedEnd(s, from)
	v := s[from:to]
	if len(v) < 8 || len(v) > maxSeen || !irregular(v) || !strings.ContainsAny(v, "0123456789") && !unspeakable(v) ||
		algorithm(v) || expression(v) || placeholder(v) || v[0] == '/' || strings.Contains(v, "://") {
		return 0
	}
	if next := run(s, to, blank); next < len(s) && lineEndAt(s, next, true) == 0 && !isQuote(s[next]) {
		return 0
	}
	start := i
	for low := max(x.done, i-lineReach); start > low && !is(s[start-1], lineEnd); start-- {
	}
	line := strings.ToLower(s[start:i])
	for _, w := range announcing {
		if strings.Contains(line, w) {
			return x.remove(from, to)
		}
	}
	return 0
}

// declared matches the password of a statement of SQL, ALTER ROLE bob WITH PASSWORD 'VALUE'; the blank after PASSWORD is at
// i.
func (x *scanner) declared(i int) int {
	s := x.s
	const word = "password"
	if i < len(word) || i-len(word) < x.done || !fold(s[i-len(word):], word) {
		return 0
	}
	k := run(s, i, blank)
	q, n := quoteAt(s, k)
	if n == 0 {
		return 0
	}
	before := strings.ToLower(s[max(x.done, i-96):i])
	for _, statement := range [...]string{"user ", "role ", "login "} {
		if strings.Contains(before, statement) && (strings.Contains(before, "create") || strings.Contains(before, "alter")) {
			to := closing(s, k+n, q, n)
			if v := s[k+n : to]; v == "" || placeholder(v) || v == Marker {
				return 0
			}
			return x.remove(k+n, to)
		}
	}
	return 0
}

// secureString matches the text of ConvertTo-SecureString of PowerShell; the blank before the text is at i.
func (x *scanner) secureString(i int) int {
	s := x.s
	k := run(s, i, blank)
	q, n := quoteAt(s, k)
	if n == 0 || !strings.Contains(strings.ToLower(s[max(x.done, i-64):i]), "to-securestring") {
		return 0
	}
	to := closing(s, k+n, q, n)
	if v := s[k+n : to]; v == "" || placeholder(v) || v == Marker {
		return 0
	}
	return x.remove(k+n, to)
}

// identified matches the password of a statement of SQL, IDENTIFIED BY 'VALUE'; the blank after BY is at i.
func (x *scanner) identified(i int) int {
	s := x.s
	if i < 3 || !strings.EqualFold(s[i-3:i], " by") || i-3 < x.done {
		return 0
	}
	before := strings.ToLower(s[max(x.done, i-48):i])
	if !strings.Contains(before, "identified ") {
		return 0
	}
	k := run(s, i, blank)
	for _, word := range [...]string{"password ", "values "} {
		if fold(s[k:], word) {
			k = run(s, k+len(word), blank)
		}
	}
	q, n := quoteAt(s, k)
	if n == 0 {
		to := unquotedEnd(s, k)
		if v := s[k:to]; v == "" || !told(v) && !strings.Contains(before, "user ") || expression(v) || placeholder(v) || v == Marker || commonWords[strings.ToLower(v)] {
			return 0
		}
		return x.remove(k, to)
	}
	to := closing(s, k+n, q, n)
	statement := strings.HasPrefix(s[i-3:], " BY") || strings.Contains(before, "user ") || strings.Contains(before, "role ")
	if v := s[k+n : to]; v == "" || placeholder(v) || !statement && (q == '`' || !told(v)) {
		return 0
	}
	return x.remove(k+n, to)
}
