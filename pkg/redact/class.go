// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

// class sorts bytes for the scan; a byte can be in several classes. forms.tsv adds classes after the last one.
type class uint32

const (
	alnum      class = 1 << iota // A-Z a-z 0-9
	keyByte                      // part of a key: alnum and - _ .
	wordByte                     // base64url: alnum and - _
	blank                        // space and tab
	urlEnd                       // ends a URL in running text
	valueEnd                     // ends an unquoted value
	schemeEnd                    // part of a URL scheme: alnum and + - .
	digit                        // 0-9
	hex                          // 0-9 a-f A-F
	capital                      // A-Z 0-9
	base64Byte                   // alnum and + / =
	tokenByte                    // part of any token: alnum and - _ . + / = ~
	lineEnd                      // newline and carriage return
	serial                       // A-Z 0-9 and -
)

// classes is the table used by every test of a byte.
var classes = func() (t [256]class) {
	for c := range t {
		t[c] = classOf(byte(c))
	}
	return t
}()

// triggers are the bytes at which a matcher is called.
var triggers = func() (t [256]bool) {
	for _, c := range "=:-_./?#~>@|$% \tAE" {
		t[c] = true
	}
	t[fullwidthLead] = true
	return t
}()

// fullwidthLead is the first byte of full-width signs in UTF-8.
const fullwidthLead = 0xef

func classOf(b byte) class {
	switch {
	case b >= '0' && b <= '9':
		return alnum | keyByte | wordByte | schemeEnd | base64Byte | tokenByte | digit | hex | capital | serial
	case b >= 'A' && b <= 'Z':
		c := alnum | keyByte | wordByte | schemeEnd | base64Byte | tokenByte | capital | serial
		if b <= 'F' {
			c |= hex
		}
		return c
	case b >= 'a' && b <= 'z':
		c := alnum | keyByte | wordByte | schemeEnd | base64Byte | tokenByte
		if b <= 'f' {
			c |= hex
		}
		return c
	case b == '\n' || b == '\r':
		return lineEnd | urlEnd | valueEnd
	case b == ' ' || b == '\t':
		return blank | urlEnd | valueEnd
	case b < ' ' || b == 0x7f:
		return urlEnd | valueEnd
	}
	switch b {
	case '-':
		return keyByte | wordByte | schemeEnd | tokenByte | serial
	case '_':
		return keyByte | wordByte | tokenByte
	case '.':
		return keyByte | schemeEnd | tokenByte
	case '+':
		return schemeEnd | base64Byte | tokenByte
	case '/', '=':
		return base64Byte | tokenByte
	case '~':
		return tokenByte
	case '"', '\'', '`':
		return urlEnd | valueEnd
	case '<', '>', '\\':
		return urlEnd
	case ',', ';', '&':
		return valueEnd
	}
	return 0
}

func is(c byte, k class) bool { return classes[c]&k != 0 }

// run returns the end of the run of bytes of class k that starts at i.
func run(s string, i int, k class) int {
	for i < len(s) && is(s[i], k) {
		i++
	}
	return i
}

// all reports whether every byte of s is of class k.
func all(s string, k class) bool { return run(s, 0, k) == len(s) }
