// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

// percented removes the word with escapes of URLs around the percent sign at i if it has a secret that is recognised by its form.
func (x *scanner) percented(i int) int {
	s := x.s
	if x.formats || i < x.percentStop || i+2 >= len(s) || !is(s[i+1], hex) || !is(s[i+2], hex) {
		return 0
	}
	from := i
	for low := max(x.done, i-maxPercented); from > low && percentedByte(s[from-1]); from-- {
	}
	to := i
	for to < len(s) && to-i < maxPercented && percentedByte(s[to]) {
		to++
	}
	x.percentStop = to
	if to-from < shortest {
		return 0
	}
	v, escaped := unescape(s[from:to])
	if !escaped || !hasFormat([]byte(v.text)) && !hasEncoded(v.text) {
		return 0
	}
	return x.remove(from, to)
}

// maxPercented bounds how much of a word is looked at, in bytes.
const maxPercented = 4 << 10

// percentedByte reports whether a byte can be a part of a word with escapes: not what separates the parts of a URL.
func percentedByte(c byte) bool {
	return is(c, keyByte) || c == '%' || c == '+' || c == '~'
}

// hasEncoded reports whether a text has base64 of a secret that is recognised by its form.
func hasEncoded(text string) bool {
	inner := scanner{s: text, cut: -1, manifest: -1, commandAt: -1, named: -1, queries: true}
	for k := 0; k < len(text); {
		if !is(text[k], alnum) {
			k++
			continue
		}
		if end := run(text, k, base64Byte|wordByte); end-k >= shortest && inner.encoded(k) > 0 {
			return true
		} else {
			k = end
		}
	}
	return false
}
