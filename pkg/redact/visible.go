// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"unicode"
)

// Visible returns s without the characters that a person who reads it does not see, and a model does: control
// characters, direction marks, tags, most zero-width characters and most variation selectors. Such characters hide
// instructions from whoever reviews a text, and secrets from Text. What scripts and emoji need stays: tabs, line ends,
// joiners, and the two variation selectors of emoji.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return -1
		}
		return r
	}, s)
}

func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d', '\ufe0e', '\ufe0f':
		return false
	case '\u00ad', '\u180e', '\u200b':
		return true
	}
	return unicode.IsControl(r) || r > unicode.MaxLatin1 && unicode.In(r, unicode.Cf, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control)
}
