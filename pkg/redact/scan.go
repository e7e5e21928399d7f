// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// class sorts bytes for the scan; a byte can be in several classes.
type class uint8

const (
	trigger   class = 1 << iota // a matcher is asked at this byte
	alnum                       // A-Z a-z 0-9
	keyByte                     // part of a key: alnum and - _ .
	wordByte                    // base64url: alnum and - _
	blank                       // space and tab
	urlEnd                      // ends a URL in running text
	valueEnd                    // ends an unquoted value
	schemeEnd                   // part of a URL scheme: alnum and + - .
)

// classes is the table behind every test of a byte.
var classes = func() (t [256]class) {
	for c := range t {
		b := byte(c)
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9':
			t[c] |= alnum | keyByte | wordByte | schemeEnd
		case b == '-':
			t[c] |= keyByte | wordByte | schemeEnd
		case b == '_':
			t[c] |= keyByte | wordByte
		case b == '.':
			t[c] |= keyByte | schemeEnd
		case b == '+':
			t[c] |= schemeEnd
		case b == ' ', b == '\t':
			t[c] |= blank | urlEnd | valueEnd
		case b < ' ', b == 0x7f:
			t[c] |= urlEnd | valueEnd
		case b == '"', b == '\'', b == '`':
			t[c] |= urlEnd | valueEnd
		case b == '<', b == '>', b == '\\':
			t[c] |= urlEnd
		case b == ',', b == ';', b == '&':
			t[c] |= valueEnd
		}
		switch b {
		case '=', ':', '-', '_', '.', '/', '?', '#', ' ', '\t', 'A':
			t[c] |= trigger
		}
	}
	return t
}()

func is(c byte, k class) bool { return classes[c]&k != 0 }

// scanner holds one pass over s. Bytes before done are in out already.
type scanner struct {
	s    string
	out  strings.Builder
	done int

	// urlStop is the end of the URL the scan is in, and cut the place of its
	// query or fragment; both are behind the scan when it is in none.
	urlStop int
	cut     int
	// plainStop is the end of a path in which no query was found.
	plainStop int
	// noEnd is set once no "-----END" follows, so that it is not sought again.
	noEnd bool
}

// scan makes one pass and reports whether it removed anything.
func scan(s string) (string, bool) {
	x := scanner{s: s, cut: -1}
	for i := 0; i < len(s); {
		if classes[s[i]]&trigger == 0 {
			i++
			continue
		}
		if end := x.at(i); end > i {
			i = end
			continue
		}
		i++
	}
	if x.done == 0 && x.out.Len() == 0 {
		return s, false
	}
	x.out.WriteString(s[x.done:])
	return x.out.String(), true
}

// at asks the matchers of the trigger byte at i. It returns where the scan
// goes on, or 0 when nothing matched.
func (x *scanner) at(i int) int {
	s := x.s
	switch s[i] {
	case ' ', '\t':
		if i+3 < len(s) && (s[i+1]|0x20) == 'i' && (s[i+2]|0x20) == 's' && (is(s[i+3], blank) || s[i+3] == ':') {
			return x.plain(i)
		}
		return x.scheme(i)
	case '=':
		return x.assignment(i)
	case ':':
		if n := slashes(s, i+1); n > 0 {
			if end := x.assignment(i); end != 0 {
				return end
			}
			return x.absolute(i, i+1+n)
		}
		return x.assignment(i)
	case '/':
		return x.slash(i)
	case '?', '#':
		return x.tail(i)
	case '-':
		if strings.HasPrefix(s[i:], "-----BEGIN ") {
			return x.pem(i)
		}
		if strings.HasPrefix(s[i:], "--") {
			if end := x.flag(i); end != 0 {
				return end
			}
		}
		return x.prefixed(i)
	case '_':
		return x.prefixed(i)
	case '.':
		if end := x.jwt(i); end != 0 {
			return end
		}
		return x.prefixed(i)
	case 'A':
		return x.cloud(i)
	}
	return 0
}

// remove replaces s[from:to] by the marker, unless it is the marker, and
// returns to. What an earlier removal already took is not touched again.
func (x *scanner) remove(from, to int) int { return x.replace(from, to, Marker) }

// replace puts with in the place of s[from:to] and returns to.
func (x *scanner) replace(from, to int, with string) int {
	if from < x.done {
		from = x.done
	}
	if from >= to {
		return to
	}
	if x.s[from:to] == with {
		return to
	}
	x.out.WriteString(x.s[x.done:from])
	x.out.WriteString(with)
	x.done = to
	return to
}

// back returns the start of the run of bytes of class k that ends before i, at
// most limit bytes long and never inside what was removed.
func (x *scanner) back(i, limit int, k class) int {
	low := max(x.done, i-limit)
	for i > low && is(x.s[i-1], k) {
		i--
	}
	return i
}

// run returns the end of the run of bytes of class k that starts at i.
func run(s string, i int, k class) int {
	for i < len(s) && is(s[i], k) {
		i++
	}
	return i
}

// boundary reports whether a token may start at i: the byte before is not part
// of a longer word.
func (x *scanner) boundary(i int) bool {
	return i == x.done || i == 0 || !is(x.s[i-1], alnum)
}

// fold reports whether s starts with prefix, which is lower case, in any case.
func fold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
