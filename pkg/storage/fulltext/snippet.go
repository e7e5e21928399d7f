// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"strings"
	"unicode"
)

// Snippet returns at most length characters of a text, around the first word of the query that it has.
func Snippet(text, query string, length int) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= length {
		return string(runes)
	}
	start := 0
	if at := firstMatch(runes, query); at > length/4 {
		start = min(at-length/4, len(runes)-length)
	}
	out := runes[start : start+length]
	if start > 0 {
		out = append([]rune{'…'}, out[1:]...)
	}
	if start+length < len(runes) {
		out = append(append([]rune{}, out[:len(out)-1]...), '…')
	}
	return string(out)
}

// firstMatch returns where the first word of the query is; 0 if there is none.
func firstMatch(runes []rune, query string) int {
	folded := make([]rune, len(runes))
	for i, r := range runes {
		folded[i] = plain(r)
	}
	text := string(folded)
	first := -1
	words, _ := few(asked(query), maxAsked)
	for _, w := range words {
		for from := 0; ; {
			i := strings.Index(text[from:], w.text)
			if i < 0 {
				break
			}
			i += from
			if before := []rune(text[:i]); len(before) == 0 || !unicode.IsLetter(before[len(before)-1]) || unspaced(before[len(before)-1]) {
				if first < 0 || len(before) < first {
					first = len(before)
				}
				break
			}
			from = i + len(w.text)
		}
	}
	return max(first, 0)
}
