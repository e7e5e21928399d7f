// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clip shortens UTF-8 text without dividing a character.
package clip

import "unicode/utf8"

// Text returns the beginning of a text that has at most limit bytes and ends with a character. A limit below 0 is 0.
func Text(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	limit = max(limit, 0)
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Mark ends a text of which more was left out.
const Mark = " … [shortened]"

// Marked is Text. A text that is cut ends with Mark, which the limit includes.
func Marked(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return Text(s, limit-len(Mark)) + Mark
}

// Whole returns text that was cut at its end without the part of a character there.
func Whole(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		tail := text[len(text)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}
