// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// jwt matches three base64url parts of which the first begins eyJ (and the
// five of an encrypted token); its first dot is at i and the word before it
// starts at from. The third part may be empty when the second begins eyJ too.
func (x *scanner) jwt(from, i int) int {
	s := x.s
	start := -1
	if k := strings.Index(s[from:i], "eyJ"); k >= 0 && from+k+6 <= i {
		start = from + k
	} else if x.spacedJSON(from, i) && x.spacedJSON(i+1, jwtPart(s, i+1)) {
		start = from
	} else if i+1 < len(s) && is(s[i+1], wordByte) {
		start = x.wrappedHead(from)
	}
	if start < 0 {
		return 0
	}
	second := padded(s, jwtPart(s, i+1))
	if second == i+1 || second >= len(s) || s[second] != '.' {
		return 0
	}
	to := jwtPart(s, second+1)
	if to == second+1 {
		if strings.HasPrefix(s[i+1:], "eyJ") {
			return x.remove(start, to)
		}
		return 0
	}
	for to+1 < len(s) && s[to] == '.' && is(s[to+1], wordByte) {
		to = jwtPart(s, to+1)
	}
	return x.remove(start, to)
}

// spacedJSON reports whether s[from:to] can be an object of JSON in base64, with or without white space after the bracket.
func (x *scanner) spacedJSON(from, to int) bool {
	v := x.s[from:to]
	return len(v) >= 14 && (strings.HasPrefix(v, "ey") || strings.HasPrefix(v, "ewo")) && irregular(v)
}

// padded returns the position after the padding of base64 at k if a dot follows it, and otherwise k.
func padded(s string, k int) int {
	end := k
	for end < len(s) && end < k+2 && s[end] == '=' {
		end++
	}
	if end < len(s) && s[end] == '.' {
		return end
	}
	return k
}

// jwtPart returns the end of the part of a token that starts at k, over line breaks.
func jwtPart(s string, k int) int {
	to := run(s, k, wordByte)
	if to-k < joinable {
		return to
	}
	for range 64 {
		next := afterBreak(s, to)
		if next < 0 {
			break
		}
		end := run(s, next, wordByte)
		dotted := end-next >= 8 && end+8 < len(s) && s[end] == '.' && run(s, end+1, wordByte) >= end+8
		if !dotted && (end-next < 8 || !continues(s, next, end, 0)) {
			break
		}
		to = end
	}
	return to
}

// wrappedHead returns the start of a token that begins eyJ on the line before
// the word at from, or a negative number.
func (x *scanner) wrappedHead(from int) int {
	s := x.s
	k, broken := from, false
	for low := max(x.done, from-32); k > low && (is(s[k-1], blank|lineEnd) || isQuote(s[k-1]) || s[k-1] == '\\' || s[k-1] == '+'); k-- {
		broken = broken || is(s[k-1], lineEnd) || s[k-1] == '+'
	}
	if !broken {
		return -1
	}
	head := x.back(k, k, wordByte)
	if at := strings.Index(s[head:k], "eyJ"); at >= 0 && head+at+8 <= k {
		return head + at
	}
	return -1
}

// dot calls the matchers of a dot at i.
func (x *scanner) dot(i int) int {
	s := x.s
	last := i
	for last > x.done && i-last < 2 && s[last-1] == '=' {
		last--
	}
	from := x.back(last, last, wordByte)
	if from == last {
		return 0
	}
	if end := x.jwt(from, i); end != 0 || last < i {
		return end
	}
	if end := x.prefixed(i); end != 0 {
		return end
	}
	if from = x.afterEscape(from); !x.boundary(from) || i+6 >= len(s) {
		return 0
	}
	if end := x.short(i); end != 0 {
		return end
	}
	return x.dotted(from, i)
}

// dotted matches tokens of several parts; the first begins at from and ends
// before the dot at i.
func (x *scanner) dotted(from, i int) int {
	s := x.s
	switch n := i - from; {
	case n == 1 && s[from] == 's': // Vault, before it had prefixes
		to := run(s, i+1, alnum)
		if v := s[i+1 : to]; len(v) == 24 && changes(v) >= 10 && strings.ContainsAny(v, "0123456789") && (to == len(s) || !is(s[to], wordByte)) {
			return x.remove(from, to)
		}
	case n >= 24 && n <= 28 && s[from] >= 'M' && s[from] <= 'O': // Discord
		return x.parts(from, i, 6, 7, 27, 40)
	case n >= 4 && strings.HasPrefix(s[i:], ".v1."): // Airtable, by OAuth
		second := run(s, i+4, wordByte)
		if second > i+4 && second < len(s) && s[second] == '.' {
			if to := run(s, second+1, hex); (to-second > 12 || second-i > 20 && to-second > 4) && (to == len(s) || !is(s[to], alnum)) {
				return x.remove(from, to)
			}
		}
	case n >= 8 && n <= 40 && authress(s[from:i]):
		if to := run(s, i+1, alnum); to < len(s) && s[to] == '.' && (strings.HasPrefix(s[to:], ".acc_") || strings.HasPrefix(s[to:], ".acc-")) {
			return x.remove(from, run(s, to, tokenByte))
		}
	}
	return 0
}

// parts removes the token from.second.third, whose first dot is at i, if its parts have the given lengths.
func (x *scanner) parts(from, i, low2, high2, low3, high3 int) int {
	s := x.s
	second := run(s, i+1, wordByte)
	if n := second - i - 1; n < low2 || n > high2 || second >= len(s) || s[second] != '.' {
		return 0
	}
	to := run(s, second+1, wordByte)
	if n := to - second - 1; n < low3 || n > high3 {
		return 0
	}
	if to+1 < len(s) && s[to] == '.' && is(s[to+1], wordByte) {
		to = run(s, to+1, wordByte)
	}
	return x.remove(from, to)
}

func authress(v string) bool {
	for _, p := range [...]string{"sc_", "ext_", "scauth_", "authress_"} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}

// tilde matches a client secret of Entra ID (three characters, a digit, "Q~"
// and some thirty more) and a token of OpenShift; the tilde is at i.
func (x *scanner) tilde(i int) int {
	s := x.s
	if i >= 6 && i-6 >= x.done && s[i-6:i] == "sha256" {
		if to := run(s, i+1, wordByte); to-i == 44 {
			return x.remove(i-6, to)
		}
	}
	if i < 5 || i-5 < x.done || s[i-1] != 'Q' || !is(s[i-2], digit) {
		return 0
	}
	to := i + 1
	for to < len(s) && to-i < 40 && (is(s[to], keyByte) || s[to] == '~') {
		to++
	}
	for to > i && s[to-1] == '.' {
		to--
	}
	if n := to - i - 1; n < 31 || n > 34 {
		return 0
	}
	return x.remove(i-5, to)
}

// telegram matches the token of a bot, digits:A…; the colon is at i.
func (x *scanner) telegram(i int) int {
	s := x.s
	if i+35 > len(s) || s[i+1] != 'A' || i == 0 || !is(s[i-1], digit) {
		return 0
	}
	from, to := x.back(i, 17, digit), run(s, i+1, wordByte)
	if n := i - from; n < 5 && s[i+2] != 'A' || n > 16 || to-i < 34 || to-i > 37 {
		return 0
	}
	return x.remove(from, to)
}

// tableau matches the name and the secret of a personal token, 22 characters of base64, "==:" and 32 characters; the
// colon is at i.
func (x *scanner) tableau(i int) int {
	s := x.s
	if i < 24 || s[i-1] != '=' || s[i-2] != '=' {
		return 0
	}
	from, to := x.back(i, 24, base64Byte), run(s, i+1, alnum)
	if i-from != 24 || to-i != 33 {
		return 0
	}
	return x.remove(i+1, to)
}

// facebook matches the token of an app, digits|…; the bar is at i.
func (x *scanner) facebook(i int) int {
	s := x.s
	if i+28 > len(s) || i == 0 || !is(s[i-1], digit) {
		return 0
	}
	from, to := x.back(i, 17, digit), run(s, i+1, wordByte)
	if n := i - from; n < 15 || n > 16 || to-i <= 27 || to-i > 41 {
		return 0
	}
	return x.remove(from, to)
}

// googleRefresh matches 1//0…; the first slash is at i.
func (x *scanner) googleRefresh(i int) int {
	s := x.s
	if i == 0 || s[i-1] != '1' || !strings.HasPrefix(s[i:], "//0") || i-1 < x.done || !x.boundary(i-1) {
		return 0
	}
	if to := run(s, i+3, wordByte); to-i >= 40 {
		return x.remove(i-1, to)
	}
	return 0
}

// suffixed matches tokens marked at their end: 32 hex digits and "-us12" of Mailchimp, "-NRMA" of New Relic, and "_mmk"
// of MaxMind. The mark is at i.
func (x *scanner) suffixed(i int) int {
	s := x.s
	if i < 32 || i+3 >= len(s) || s[i+1] != 'u' && s[i+1] != 'N' && s[i+1] != 'm' {
		return 0
	}
	switch {
	case strings.HasPrefix(s[i:], "-us"):
		to := run(s, i+3, digit)
		if n := to - i - 3; n < 1 || n > 2 || to < len(s) && is(s[to], alnum) {
			return 0
		}
		if from := i - 32; from >= x.done && all(s[from:i], hex) && x.boundary(from) {
			return x.remove(from, to)
		}
	case strings.HasPrefix(s[i:], "-NRMA") && i >= 42: // New Relic
		if from := i - 42; from >= x.done && all(s[from:i], alnum) && x.boundary(from) {
			return x.remove(from, i+5)
		}
	case strings.HasPrefix(s[i:], "_mmk") && i >= 36:
		if from := i - 36; from >= x.done && s[from+6] == '_' && all(s[from:i], wordByte) && x.boundary(from) {
			return x.remove(from, i+4)
		}
	}
	return 0
}
