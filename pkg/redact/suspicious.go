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

// longestKey is the length of the longest value that can be a key. Some vendors' are as long as a signed document.
const longestKey = 4096

// opaque reports whether v is one word of 15 characters or more with letters and digits, or a UUID. Vendors
// issue keys of this form.
func opaque(v string) bool {
	v = strings.TrimRight(v, closers)
	if len(v) < 15 || len(v) > longestKey || !all(v, tokenByte) && strings.IndexByte(v, '%') < 0 || strings.HasPrefix(v, "/") {
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
	if padded64(v) || assorted(v) {
		return true
	}
	v = strings.TrimRight(v, closers+"=")
	if len(v) >= 40 && len(v) <= longestKey && all(v, base64Byte) && changes(v)*100 >= 38*len(v) {
		return true
	}
	if signed(v) || jumbled(v) || grouped(v) {
		return true
	}
	if len(v) < 10 || len(v) > longestKey || v[0] == '/' || strings.ContainsAny(v, "()[]{}<>@#\\") || strings.Contains(v, "://") || strings.HasPrefix(v, "sha") ||
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
		if part := v[from:i]; len(part) >= 10 && (mixes(part) || len(part) >= 12 && scrambled(part) || len(part) >= 16 && unspeakable(part) || len(part) >= 15 && all(part, digit)) {
			return true
		} else if len(part) >= 4 && len(part) < 10 && irregular(part) && strings.ContainsAny(part, "0123456789") {
			mixed++
		}
	}
	if mixed > 1 && len(v) >= 14 {
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
	signs := 0
	for i := range len(v) {
		if strings.IndexByte("!@#$%^&*~", v[i]) >= 0 && strings.IndexByte(v[:i], v[i]) < 0 {
			signs++
		}
	}
	if signs == 0 {
		return false
	}
	digits, capitals, small := count(v)
	return digits > 1 && capitals+small > 3 && (signs > 1 || changes(v)*2 >= len(v))
}

// padded64 reports whether v is base64 that ends in its padding, and no words.
func padded64(v string) bool {
	return len(v) >= 8 && len(v) <= longestKey && v[len(v)-1] == '=' && !strings.ContainsAny(v, "()[]{}<>\"'`,; ") && strings.Trim(v, "=") != "" &&
		strings.IndexByte(strings.TrimRight(v, "="), '=') < 0 && changes(v)*2 >= len(v)
}

// assorted reports whether v is a short word of several digits, capitals and signs in turn, as generators of passwords make
// them. The signs of names, paths and numbers do not count.
func assorted(v string) bool {
	if len(v) < 8 || len(v) > 16 || strings.ContainsAny(v, "([{\"'`") || strings.Contains(v, "://") || changes(v)*2 < len(v) {
		return false
	}
	signs := 0
	for i := range len(v) {
		if c := v[i]; !is(c, keyByte) && c != '/' && c != ':' {
			signs++
		}
	}
	digits, capitals, _ := count(v)
	return digits > 1 && capitals > 1 && signs > 1
}

// jumbled reports whether small letters, capitals and digits alternate in v all along, whatever signs are between them. In
// a short word they alternate nearly everywhere.
func jumbled(v string) bool {
	if len(v) < 7 || len(v) > longestKey || len(v) < 16 && !all(v, tokenByte) || strings.Contains(v, "://") || strings.ContainsAny(v, `"'`) {
		return false
	}
	digits, capitals, small := count(v)
	if len(v) < 10 {
		return all(v, alnum) && digits > 0 && capitals > 1 && small > 1 && changes(v)*5 >= len(v)*3
	}
	return digits > 0 && capitals > 1 && small > 1 && changes(v)*2 >= len(v)
}

// grouped reports whether v is four groups or more of letters and digits with hyphens between them, as in a serial number
// or a UUID with any letters.
func grouped(v string) bool {
	v = strings.Trim(v, "-")
	if len(v) < 15 || len(v) > 100 || strings.Count(v, "-") < 3 {
		return false
	}
	digits, capitals, small := count(v)
	if digits < 2 || capitals+small < 3 || capitals > 0 && small > 0 {
		return false
	}
	mixed := 0
	for group := range strings.SplitSeq(v, "-") {
		if len(group) < 3 || !all(group, alnum) {
			return false
		}
		if strings.ContainsAny(group, "0123456789") {
			mixed++
		}
	}
	return mixed > 1 || digits > 7
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
	digits, capitals, small := count(v)
	return digits > 1 && capitals > 1 && small > 1 && changes(v)*4 >= len(v)
}

// count returns how many digits, capitals and small letters v has.
func count(v string) (digits, capitals, small int) {
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
	return digits, capitals, small
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
