// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsRef reports whether git allows a name for a branch (git check-ref-format --allow-onelevel). One that begins with '-' would be read as an
// option, and one that is not UTF-8 cannot be sent as JSON; these are not taken either.
func IsRef(s string) bool {
	if s == "" || s == "@" || s[0] == '-' || strings.HasSuffix(s, ".") || strings.Contains(s, "..") || strings.Contains(s, "@{") ||
		strings.ContainsAny(s, ` ~^:?*[\`) || strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}
