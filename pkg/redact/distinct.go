// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
)

// Limits of the values that are removed wherever they occur again, in bytes.
const (
	minSeen = 8
	maxSeen = 512
)

// noted appends a removed value to found if it must be removed wherever it occurs: the value, or what a header or a sentence
// holds, such as the values of cookies.
func noted(found []string, v string) []string {
	if len(found) >= seenOnce || len(v) < minSeen || len(v) > maxSeen {
		return found
	}
	if !several(v) {
		return note(found, v)
	}
	if phrase(v) {
		found = note(found, v)
	}
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r <= ' ' || r == ';' }) {
		part = strings.TrimRight(part, ",")
		if _, value, pair := strings.Cut(part, "="); pair && strings.Trim(value, "=") != "" {
			part = value
		}
		if part = strings.Trim(part, `"'`); distinct(part) {
			found = note(found, part)
		}
	}
	return found
}

// several reports whether v has words with blanks, semicolons or line ends between them.
func several(v string) bool {
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c == ';' {
			return true
		}
	}
	return false
}

// note appends v if it is distinct, in each way in which it can be spelled in JSON.
func note(found []string, v string) []string {
	if len(v) < minSeen || !distinct(v) && !phrase(v) {
		return found
	}
	found = once(found, v)
	if strings.ContainsAny(v, "&<>") {
		for _, s := range Spellings(v)[1:] {
			found = once(found, s)
		}
	}
	return found
}

func once(found []string, v string) []string {
	if len(found) >= seenOnce || slices.Contains(found, v) {
		return found
	}
	return append(found, v)
}

// Distinct reports whether a text is one word that no ordinary text has by chance, so that it can be removed wherever it occurs.
func Distinct(v string) bool { return distinct(v) }

// distinct reports whether v is one word that no ordinary text has by chance: it mixes letters with digits or signs, or
// small letters with capitals, and is not a name or a number of something. It has no character that JSON writes in another
// way but those of note, and cannot overlap the marker.
func distinct(v string) bool {
	if len(v) < minSeen {
		return false
	}
	signs := false
	for i := range len(v) {
		c := v[i]
		if is(c, alnum) {
			continue
		}
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"'\`+"`[]", c) >= 0 {
			return false
		}
		signs = signs || passwordSign(c)
	}
	digits, capitals, small := count(v)
	letters := capitals + small
	if letters < 2 || strings.ContainsAny(v, ",:{}") && strings.Trim(v, "0123456789+-.eE,:{}trufalsn") == "" {
		return false // what stands between strings of JSON: {}, 12, true
	}
	if digits > 1 {
		return !algorithm(v)
	}
	return letters > 3 && signs && punctuated(v, digits > 0, capitals > 0 && small > 0) ||
		all(v, alnum) && (leet(v) || digits == 0 && len(v) >= 10 && changes(v)*2 > len(v))
}

func passwordSign(c byte) bool { return strings.IndexByte("!@#$%^&*", c) >= 0 }

// punctuated reports whether the signs within v are those of a password: two different ones, an exclamation mark between
// letters, or one in a word with a digit or with capitals and small letters. Addresses, paths, references and expressions
// have them too, and are told apart.
func punctuated(v string, digits, mixed bool) bool {
	v = strings.TrimRight(v, "!?.,:;")
	if strings.ContainsAny(v, "()={}/") || strings.Contains(v, "&&") || strings.Contains(v, "!.") {
		return false
	}
	if at := strings.IndexByte(v, '@'); at > 0 && strings.IndexByte(v[at:], '.') > 0 && strings.Trim(v[:at], "!#$%^&*") == v[:at] {
		return false // an address
	}
	kinds, last := 0, byte(0)
	for i := 1; i+1 < len(v); i++ {
		c := v[i]
		if !passwordSign(c) {
			continue
		}
		if kinds == 0 || c != last {
			kinds++
		}
		last = c
		if c == '!' && is(v[i-1], alnum) && is(v[i+1], alnum) {
			return true
		}
	}
	if kinds > 1 {
		return true
	}
	if kinds == 0 || !digits && !mixed {
		return false
	}
	at := strings.IndexByte(v[1:], last) + 1
	v += "  " // for the two bytes after the sign
	switch last {
	case '@':
		return v[at+1] != 'v' || !is(v[at+2], digit) // action@v4
	case '^':
		return true
	case '#':
		return strings.IndexByte(v[:at], '.') < 0 // page.md#Section
	case '%':
		return !is(v[at+1], hex) || !is(v[at+2], hex)
	case '$':
		return v[at+1] >= 'a' && v[at+1] <= 'z' // and no class within a class, Outer$Inner
	}
	return false
}

// leet reports whether one digit stands in v for a letter: Passw0rd.
func leet(v string) bool {
	at := strings.IndexAny(v, "0347")
	lower := func(i int) bool { return i >= 0 && i < len(v) && v[i] >= 'a' && v[i] <= 'z' }
	return at > 1 && lower(at-1) && lower(at-2) && lower(at+1) && lower(at+2) && strings.Trim(v[at+1:], "0123456789") == v[at+1:]
}

// phrase reports whether v is three words or more, as long as a sentence, on one line.
func phrase(v string) bool {
	if len(v) < 20 || strings.Count(v, " ") < 2 {
		return false
	}
	letters := 0
	for i := range len(v) {
		c := v[i]
		if c < ' ' || c >= 0x7f || strings.IndexByte(`"'\`+"`[]{}<>&=;:", c) >= 0 {
			return false
		}
		if c|0x20 >= 'a' && c|0x20 <= 'z' {
			letters++
		}
	}
	return letters*4 >= len(v)*3
}
