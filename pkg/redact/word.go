// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// plain matches "the api key is VALUE" and the same in other languages; the blank before "is" is at i, and the verb ends at end.
func (x *scanner) plain(i, end int) int {
	s := x.s
	from := x.back(i, keyLimit, keyByte)
	if from = x.foreign(from, i); from == i {
		return 0
	}
	if k := x.keyKindAt(from, i); k < secretValue || !namesSecret(s[from:i]) {
		return 0
	}
	k, colon := run(s, end, blank), false
	if k < len(s) && (s[k] == ':' || s[k] == '=') {
		k, colon = run(s, k+1, blank), true
	}
	v, ok := x.value(i, k, false)
	if !ok || (!colon || sentence(s, v.to)) && !quotedAt(s, v.from) && !told(s[v.from:v.to]) {
		return 0
	}
	return x.spoken(i, k)
}

func quotedAt(s string, from int) bool { return from > 0 && isQuote(s[from-1]) }

// told reports whether a word after "the token is" can be a secret: it has letters and digits, or signs, or is long.
// Words, numbers of things and names of algorithms (base64-encoded, SHA-256) are not.
func told(word string) bool {
	word = strings.TrimRight(word, "!?:;"+closers)
	signs := 0
	for i := 1; i < len(word); i++ {
		if strings.IndexByte("!@#$%^&*+=~", word[i]) >= 0 {
			signs++
		}
	}
	digits, capitals, small := count(word)
	letters := capitals + small
	switch {
	case digits == 0 && signs == 0:
		return letters >= 20 && letters == len(word) || letters >= 12 && changes(word)*20 >= letters*9
	case letters == 0:
		return digits >= 6
	}
	return !algorithm(word) && len(word) >= 5
}

// algorithm reports whether a word is a number of units, or the name of an algorithm or of a format.
func algorithm(word string) bool {
	low := strings.TrimPrefix(strings.ToLower(word), "hmac-")
	first := run(low, 0, digit)
	if first > 0 {
		rest := strings.TrimLeft(low[first:], "-")
		return strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz-") == ""
	}
	letters := 0
	for letters < len(low) && low[letters] >= 'a' && low[letters] <= 'z' {
		letters++
	}
	name := low[:letters]
	if letters < len(low) && low[letters] == '-' {
		letters++
	}
	if end := run(low, letters, digit); end == letters || end < len(low) && low[end] != '-' {
		return false
	}
	switch name {
	case "base", "sha", "md", "utf", "rsa", "aes", "hs", "rs", "es", "ps", "ed", "x", "v", "http", "ipv", "oauth", "p", "u", "int", "uint", "float", "hmac", "pkcs":
		return true
	}
	return false
}

// namesSecret reports whether the word names a secret itself, as in "the token is …", and not something
// about a secret.
func namesSecret(word string) bool {
	if foreignName(word) {
		return true
	}
	for _, w := range [...]string{"key", "token", "secret", "password", "credential", "credentials", "passwd", "pwd", "passphrase", "passwort", "kennwort", "passe", "contrasena", "senha", "wachtwoord"} {
		if len(word) >= len(w) && strings.EqualFold(word[len(word)-len(w):], w) {
			return true
		}
	}
	return false
}

// commonWords may follow "the token is" in prose and are not tokens.
var commonWords = map[string]bool{
	"arg": true, "string": true, "file": true, "value": true, "word": true, "password": true, "token": true, "secret": true,
	"a": true, "about": true, "absent": true, "accepted": true, "already": true, "also": true, "always": true,
	"an": true, "available": true, "bad": true, "bound": true, "correct": true, "created": true, "empty": true,
	"expired": true, "fine": true, "for": true, "from": true, "good": true, "ignored": true, "in": true,
	"incorrect": true, "invalid": true, "kept": true, "known": true, "malformed": true, "missing": true,
	"never": true, "no": true, "not": true, "of": true, "ok": true, "on": true, "one": true, "only": true,
	"optional": true, "or": true, "passed": true, "present": true, "read": true, "refused": true,
	"rejected": true, "removed": true, "required": true, "revoked": true, "rotated": true, "sent": true,
	"set": true, "still": true, "stored": true, "that": true, "the": true, "then": true, "to": true,
	"too": true, "unknown": true, "unset": true, "used": true, "valid": true, "when": true, "where": true,
	"flag": true, "flags": true, "option": true, "options": true, "wrong": true, "and": true, "as": true, "at": true, "be": true, "by": true, "if": true, "it": true, "with": true,
}

// spoken removes the word or quoted string at k unless it is a common word.
func (x *scanner) spoken(i, k int) int {
	v, ok := x.value(i, k, false)
	if !ok {
		return 0
	}
	word := x.s[v.from:v.to]
	if v.from == k && !placeholder(word) {
		word = strings.TrimRight(word, "!?:"+closers)
	}
	if word == "" || commonWords[strings.ToLower(word)] || x.exempt(secretValue, "", word, true) ||
		strings.IndexFunc(word, func(r rune) bool { return r >= 0x80 || is(byte(r), alnum) }) < 0 {
		return 0
	}
	return x.remove(v.from, v.from+len(word))
}

// flag matches "--password VALUE" and "-password VALUE"; the first dash is at i.
func (x *scanner) flag(i int) int {
	s := x.s
	if i > 0 && is(s[i-1], keyByte) {
		return 0
	}
	name := i + 1
	if name < len(s) && s[name] == '-' {
		name++
	}
	end := name
	for end < len(s) && end-i <= keyLimit && is(s[end], keyByte) {
		end++
	}
	if end >= len(s) || end-name < 4 || !is(s[end], blank) || !x.flagNames(name, end) {
		return 0
	}
	k := run(s, end, blank)
	if k >= len(s) || s[k] == '-' {
		return 0
	}
	v, ok := x.value(i, k, false)
	if !ok || aboutTail(s[name:end]) && plainValue(s[v.from:v.to]) || fileName(s[v.from:v.to]) {
		return 0
	}
	return x.spoken(i, k)
}

// fileName reports whether a value is the path of a file with a key.
func fileName(v string) bool {
	for _, end := range [...]string{".pem", ".key", ".crt", ".json", ".yaml", ".txt", ".pub"} {
		if strings.HasSuffix(v, end) {
			return true
		}
	}
	return strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/")
}

// flagNames reports whether a flag with that name is followed by a secret.
func (x *scanner) flagNames(from, to int) bool {
	name := x.s[from:to]
	return keyKind(name) >= secretPass || name == "passin" || name == "passout"
}

// scheme matches "Bearer VALUE" and "Basic VALUE" outside a header; the blank
// is at i.
func (x *scanner) scheme(i int) int {
	s := x.s
	from := 0
	switch {
	case i >= 6 && (s[i-1]|0x20) == 'r' && fold(s[i-6:], "bearer"):
		from = i - 6
	case i >= 5 && (s[i-1]|0x20) == 'c' && fold(s[i-5:], "basic"):
		from = i - 5
	default:
		return 0
	}
	if from < x.done || !x.boundary(from) {
		return 0
	}
	k := run(s, i, blank)
	if _, n := quoteAt(s, k); n > 0 {
		if k += n; k < len(s) && s[k] == '+' {
			return 0 // "Bearer "+token
		}
	}
	to := k
	random := false
	for to < len(s) && (is(s[to], schemeEnd) || strings.IndexByte("_~/=", s[to]) >= 0) {
		c := s[to]
		random = random || c >= '0' && c <= '9' || c == '=' || to > k && c >= 'A' && c <= 'Z'
		to++
	}
	for to > k && s[to-1] == '.' {
		to--
	}
	if from == i-5 {
		if !basicValue(s[k:to]) {
			return 0
		}
	} else if n := to - k; n < 8 || !random && n < 16 {
		return 0
	}
	return x.remove(k, to)
}

// basicValue reports whether the text after "Basic", which is also an ordinary word, is a user and a password.
func basicValue(v string) bool {
	return userAndPassword(v) ||
		len(v) >= 16 && len(v)%4 == 0 && all(v, base64Byte) && irregular(v) && strings.ContainsAny(v, "0123456789=")
}
