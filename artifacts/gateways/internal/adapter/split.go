// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"strings"
	"unicode/utf8"
)

// Split divides a text into parts of at most most bytes: after a line break or, if there is none in the second half of a part, after a space
// or, failing that, between two characters. The parts joined are the text.
func Split(text string, most int) []string {
	most = max(most, utf8.UTFMax)
	var parts []string
	for len(text) > most {
		end := most
		for !utf8.RuneStart(text[end]) {
			end--
		}
		for _, space := range []string{"\n", " "} {
			if i := strings.LastIndex(text[:end], space); i >= most/2 {
				end = i + 1
				break
			}
		}
		parts, text = append(parts, text[:end]), text[end:]
	}
	return append(parts, text)
}

// Clip shortens a text, or an id, that people or chat systems have made longer than the protocol allows.
func Clip(text string, most int) string {
	const dots = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
