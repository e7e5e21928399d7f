// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// colourBefore returns the start of the terminal colour code that ends before i, or i if there is none.
func colourBefore(s string, i int) int {
	if i == 0 || s[i-1] != 'm' {
		return i
	}
	k := i - 1
	for k > 0 && i-k < 16 && (is(s[k-1], digit) || s[k-1] == ';') {
		k--
	}
	if k == 0 || s[k-1] != '[' {
		return i
	}
	for _, e := range escapes {
		if strings.HasSuffix(s[:k-1], e) {
			return k - 1 - len(e)
		}
	}
	return i
}

// escapes are the spellings of the byte that starts a terminal colour code.
var escapes = [...]string{"\x1b", `\u001b`, `\u001B`, `\x1b`, `\x1B`, `\033`, `\e`}

// colourAfter returns the end of the terminal colour code at i, or i if there is none.
func colourAfter(s string, i int) int {
	if i >= len(s) || s[i] != 0x1b && s[i] != '\\' {
		return i
	}
	for _, e := range escapes {
		if !strings.HasPrefix(s[i:], e) {
			continue
		}
		k := i + len(e)
		for k < len(s) && k-i < 24 && (is(s[k], digit) || s[k] == ';' || s[k] == '[') {
			k++
		}
		if k < len(s) && s[k] == 'm' {
			return k + 1
		}
	}
	return i
}
