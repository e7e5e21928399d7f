// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// cryptSchemes are the names of schemes in hashes of passwords, as crypt(5) and Kerberos tools write them.
var cryptSchemes = setOf(`1 2 2a 2b 2x 2y 5 6 7 8 9 y gy p h s apr1 sha1 argon2i argon2d argon2id scrypt pbkdf2 krb5asrep krb5tgs krb5pa`)

// crypt matches the hash of a password, $scheme$salt$hash; the dollar is at i.
func (x *scanner) crypt(i int) int {
	s := x.s
	name := run(s, i+1, alnum)
	if n := name - i - 1; n == 0 || n > 9 || name >= len(s) || s[name] != '$' || i > 0 && is(s[i-1], alnum) || !cryptSchemes[strings.ToLower(s[i+1:name])] {
		return 0
	}
	limit := i + maxSeen
	if fold(s[i+1:], "krb5") {
		limit = i + 16*maxSeen // it holds a whole ticket
	}
	to, last := name+1, name+1
	for to < min(len(s), limit) && (is(s[to], base64Byte) || strings.IndexByte("$.,:@-_", s[to]) >= 0) {
		if s[to] == '$' {
			last = to + 1
		}
		to++
	}
	for to > last && strings.IndexByte(".,:", s[to-1]) >= 0 && to-last > 22 {
		to--
	}
	if to-last < 20 || last == name+1 && to-last < 53 {
		return 0
	}
	return x.remove(i, to)
}
