// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// maxEncoded bounds how much of a base64 word is decoded, in bytes.
const maxEncoded = 1 << 20

// sextets holds the values of the base64 alphabets, plain and for URLs, plus one.
var sextets = func() (t [256]byte) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i) + 1
	}
	t['-'], t['_'] = 63, 64
	return t
}()

// encoded removes the base64 word at k if it decodes to text with a secret that is recognised by its form:
// a name and a token, a key block, a JWT. Binary data is detected within a few bytes and kept. The further
// lines of a wrapped word are removed with it.
func (x *scanner) encoded(k int) int {
	if x.formats {
		return 0
	}
	s := x.s
	if k < x.urlStop { // a part of the URL's path
		s = s[:k+authorityLen(s[k:x.urlStop])]
	}
	n, to := encodedText(s, k)
	x.encodedStop = to
	if n < 18 || !hasFormat(decode(s, k, n)) {
		return 0
	}
	for to < len(s) {
		next := afterBreak(s, to)
		if next < 0 {
			break
		}
		end := run(s, next, base64Byte)
		if end-next < 16 && (end == next || s[end-1] != '=') || end < len(s) && !is(s[end], valueEnd) && s[end] != '\\' {
			break
		}
		to = end
	}
	return x.remove(k, to)
}

// hasFormat reports whether text holds a secret that is recognised by its form.
func hasFormat(text []byte) bool {
	inner := scanner{s: string(text), cut: -1, formats: true}
	inner.pass(part{0, len(text)})
	return inner.marks > 0
}

// encodedText returns how many bytes of text the base64 word at k decodes to, 0 if it is not text, and the
// position up to which the word was read.
func encodedText(s string, k int) (n, to int) {
	var bits uint32
	i := k
	for ; i+4 <= len(s) && i-k < maxEncoded; i += 4 {
		a, b, c, d := sextets[s[i]], sextets[s[i+1]], sextets[s[i+2]], sextets[s[i+3]]
		if a == 0 || b == 0 || c == 0 || d == 0 {
			break
		}
		bits = uint32(a-1)<<18 | uint32(b-1)<<12 | uint32(c-1)<<6 | uint32(d-1)
		if !printable[byte(bits>>16)] || !printable[byte(bits>>8)] || !printable[byte(bits)] {
			return 0, i + 3
		}
	}
	for end := min(i+3, len(s)); i < end && sextets[s[i]] > 0 && i-k < maxEncoded; i++ {
	}
	n = (i - k) * 3 / 4
	for i < len(s) && s[i] == '=' {
		i++
	}
	return n, i
}

// decode returns the first n bytes that the base64 word at k decodes to.
func decode(s string, k, n int) []byte {
	text := make([]byte, 0, n+2)
	var bits uint32
	i := k
	for ; len(text)+3 <= n; i += 4 {
		bits = uint32(sextets[s[i]]-1)<<18 | uint32(sextets[s[i+1]]-1)<<12 | uint32(sextets[s[i+2]]-1)<<6 | uint32(sextets[s[i+3]]-1)
		text = append(text, byte(bits>>16), byte(bits>>8), byte(bits))
	}
	for ; len(text) < n; i++ {
		bits <<= 6
		if i < len(s) && sextets[s[i]] > 0 {
			bits |= uint32(sextets[s[i]] - 1)
		}
		if (i-k)%4 == 3 {
			text = append(text, byte(bits>>16), byte(bits>>8), byte(bits))
		}
	}
	return text[:n]
}

// printable are the bytes of text.
var printable = func() (t [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = true
	}
	t['\n'], t['\r'], t['\t'] = true, true, true
	return t
}()

// userAndPassword reports whether v is base64 of name:password, as in a
// configuration of docker or npm.
func userAndPassword(v string) bool {
	n, to := encodedText(v, 0)
	if to != len(v) || n < 4 {
		return false
	}
	colon := bytes.IndexByte(decode(v, 0, n), ':')
	return colon > 0 && colon+1 < n
}
