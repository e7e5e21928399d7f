// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// Marks of a block of key material: PEM and OpenPGP, and SSH2 with four dashes.
const (
	pemBegin = "-----BEGIN "
	sshBegin = "---- BEGIN "
	pemEnd   = "-----END "
	sshEnd   = "---- END "
)

// pem matches a block that holds a private key; its first dash is at i. A block without an end extends as
// far as the text can be key material. Likewise, text before an end without a beginning is removed as far
// back as it can be key material.
func (x *scanner) pem(i int) int {
	s := x.s
	if !strings.HasPrefix(s[i:], "----") {
		return 0
	}
	begin, end, dashes := pemBegin, pemEnd, "-----"
	switch rest := s[i:]; {
	case strings.HasPrefix(rest, pemBegin):
	case strings.HasPrefix(rest, sshBegin):
		begin, end, dashes = sshBegin, sshEnd, "----"
	case strings.HasPrefix(rest, pemEnd):
		return x.pemTail(i)
	default:
		return 0
	}
	n := secretTitle(s[i+len(begin):], dashes)
	if n < 0 {
		return 0
	}
	body := i + len(begin) + n
	if e, stray := x.blockEnd(body, end); e < stray {
		to := e + len(end)
		if d := strings.Index(s[to:min(len(s), to+80)], dashes); d >= 0 {
			to += d + len(dashes)
		}
		return x.remove(i, to)
	}
	to := body
	for to < len(s) && (is(s[to], alnum|blank) || strings.IndexByte("+/=\\\r\n:,-", s[to]) >= 0) {
		to++
	}
	return x.remove(i, to)
}

// blockEnd returns the position of the next end of a block and that of the next byte that no block
// contains, because source code often mentions blocks. Both are cached until the scan has passed them.
func (x *scanner) blockEnd(body int, end string) (at, stray int) {
	s := x.s
	known := &x.nextEnd
	if end == sshEnd {
		known = &x.nextSSHEnd
	}
	if *known < body {
		*known = indexFrom(s, body, end)
	}
	if x.nextStray < body {
		x.nextStray = len(s)
		if k := strings.IndexAny(s[body:], "{};$|&!"); k >= 0 {
			x.nextStray = body + k
		}
	}
	if *known == len(s) {
		return len(s), 0
	}
	return *known, x.nextStray
}

// indexFrom returns the position of what in s from i on, or len(s).
func indexFrom(s string, i int, what string) int {
	if k := strings.Index(s[i:], what); k >= 0 {
		return i + k
	}
	return len(s)
}

// secretTitle returns the length of the rest of a first line that names a
// secret, or a negative number.
func secretTitle(s, dashes string) int {
	s = s[:min(len(s), 80)]
	n := strings.Index(s, dashes)
	if n < 0 || !strings.Contains(s[:n], "PRIVATE KEY") && !strings.Contains(s[:n], "SECRET") {
		return -1
	}
	return n + len(dashes)
}

// pemTail matches the last lines of a block whose first line is missing; the first dash of its end line is
// at i.
func (x *scanner) pemTail(i int) int {
	s := x.s
	n := secretTitle(s[i+len(pemEnd):], "-----")
	if n < 0 {
		return 0
	}
	from := i
	for from > x.done {
		stop := from
		for stop > x.done && (is(s[stop-1], lineEnd|blank) || s[stop-1] == 'n' && stop-1 > x.done && s[stop-2] == '\\') {
			stop--
			if s[stop] == 'n' {
				stop--
			}
		}
		line := x.back(stop, stop, base64Byte)
		if line > x.done && line < stop && s[line] == 'n' && s[line-1] == '\\' {
			line++
		}
		if stop == from && from < i || line == stop || stop-line < 16 && from < i {
			break
		}
		from = line
	}
	return x.remove(from, i+len(pemEnd)+n)
}
