// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// suspicious reports whether a value under a key of one of the weaker kinds is
// a secret.
func suspicious(kind secretKind, key, v string) bool {
	if len(key) >= 4 && strings.EqualFold(key[len(key)-4:], "auth") && userAndPassword(v) {
		return true
	}
	switch kind {
	case secretKeyed:
		return keyLike(v)
	case secretOpaque:
		return opaque(v)
	}
	if len(key) == 3 {
		return len(v) >= 20 && !strings.ContainsAny(v, "./") && keyLike(v)
	}
	return kind == secretRandom && random(v)
}

// opaque reports whether v is one word of 15 characters or more with letters and digits, or a UUID. Vendors
// issue keys of this form.
func opaque(v string) bool {
	v = strings.TrimRight(v, closers)
	if len(v) < 15 || len(v) > 400 || !all(v, tokenByte) && strings.IndexByte(v, '%') < 0 || strings.HasPrefix(v, "/") {
		return false
	}
	longest, letters, digits := 0, 0, 0
	for i := 0; i < len(v); i++ {
		from := i
		for ; i < len(v) && is(v[i], alnum); i++ {
			if is(v[i], digit) {
				digits++
			} else {
				letters++
			}
		}
		longest = max(longest, i-from)
	}
	return digits > 1 && (letters > 0 && longest >= 15 || len(v) == 36 && longest == 12)
}

// keyLike reports whether v can be a key: one word of 10 characters or more that mixes letters and digits, a UUID, a long
// number, or letters that no language puts together.
func keyLike(v string) bool {
	v = strings.TrimRight(v, closers+"=")
	if len(v) >= 40 && len(v) <= 4096 && all(v, base64Byte) && changes(v)*100 >= 38*len(v) {
		return true
	}
	if signed(v) {
		return true
	}
	if len(v) < 10 || len(v) > 400 || v[0] == '/' || strings.ContainsAny(v, "()[]{}<>@#\\") || strings.Contains(v, "://") || strings.HasPrefix(v, "sha") ||
		strings.HasPrefix(v, "0x") && len(v) <= 18 { // a number of 64 bits
		return false
	}
	if opaque(v) {
		return true
	}
	mixed := 0
	for i := 0; i < len(v); i++ {
		from := i
		i = run(v, i, alnum)
		if part := v[from:i]; len(part) >= 10 && (mixes(part) || len(part) >= 12 && scrambled(part) || len(part) >= 16 && (all(part, digit) || unspeakable(part))) {
			return true
		} else if len(part) >= 4 && len(part) < 10 && irregular(part) && strings.ContainsAny(part, "0123456789") {
			mixed++
		}
	}
	if mixed > 1 && len(v) >= 16 {
		return true
	}
	return len(v) >= 20 && !strings.ContainsAny(v, "./") && random(v)
}

// mixes reports whether a word has two digits or more, and letters before or between them.
func mixes(part string) bool {
	digits, turns := 0, 0
	for i := range len(part) {
		if is(part[i], digit) {
			digits++
		}
		if i > 0 && is(part[i], digit) != is(part[i-1], digit) {
			turns++
		}
	}
	return digits > 1 && (turns > 1 || digits > 2 && turns == 1 && digits < len(part)-2)
}

// scrambled reports whether a word changes between small letters, capitals and digits too often to be a name, or has a
// digit between letters with hardly a vowel.
func scrambled(part string) bool {
	if changes(part)*2 >= len(part) {
		return true
	}
	inner := strings.TrimRight(part, "0123456789")
	return strings.ContainsAny(inner, "0123456789") && unspeakable(inner)
}

// signed reports whether v is a word of letters and digits with several different signs, as generators of passwords make
// them, and not an expression.
func signed(v string) bool {
	if len(v) < 12 || len(v) > 100 || strings.Contains(v, "://") || strings.ContainsAny(v, `()[]{}"'\`) {
		return false
	}
	letters, digits, signs := 0, 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case is(c, digit):
			digits++
		case is(c, alnum):
			letters++
		case strings.IndexByte("!@#$%^&*~", c) >= 0 && strings.IndexByte(v[:i], c) < 0:
			signs++
		}
	}
	return digits > 1 && letters > 3 && (signs > 1 || signs == 1 && changes(v)*2 >= len(v))
}

// unspeakable reports whether letters have too few vowels, or change between small letters and capitals too often, to be
// words.
func unspeakable(part string) bool {
	vowels := 0
	for i := range len(part) {
		switch part[i] | 0x20 {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			vowels++
		}
	}
	return vowels*100 < len(part)*27 || changes(part)*20 >= len(part)*9
}

// random reports whether v is one word of 20 characters or more with small letters, capitals and digits
// throughout.
func random(v string) bool {
	v = strings.TrimRight(v, closers+"=")
	if len(v) < 20 || len(v) > 400 || !all(v, tokenByte) {
		return false
	}
	if strings.ContainsAny(v, "./") {
		return false // a name, or a path
	}
	digits, capitals, small := 0, 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case is(c, digit):
			digits++
		case is(c, capital):
			capitals++
		case is(c, alnum):
			small++
		}
	}
	return digits > 1 && capitals > 1 && small > 1 && changes(v)*4 >= len(v)
}

// changes returns how often v changes between small letters, capitals, digits and signs. In random text
// that happens at every second character or more often.
func changes(v string) int {
	n := 0
	last := class(0)
	for i := range len(v) {
		kind := classes[v[i]] & (digit | capital | alnum)
		if kind != last {
			n++
		}
		last = kind
	}
	return n
}
