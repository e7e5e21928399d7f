// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"slices"
	"strings"
)

// fragment is the length of the shortest part of a secret that Fragments removes, in bytes.
const fragment = 8

// Fragments removes known secrets from a text that may quote them in part or in another case. A part of 8 bytes or more
// is replaced by [REDACTED]; of a shorter secret, the whole.
func Fragments(text string, secrets []string) string {
	low := lower(text)
	hidden := make([]bool, len(text))
	found := false
	for _, secret := range secrets {
		secret = lower(secret)
		n := min(fragment, len(secret))
		if n == 0 {
			continue
		}
		parts := make(map[string]bool, len(secret))
		for i := 0; i+n <= len(secret); i++ {
			parts[secret[i:i+n]] = true
		}
		for i := 0; i+n <= len(low); i++ {
			if parts[low[i:i+n]] {
				found = true
				for j := i; j < i+n; j++ {
					hidden[j] = true
				}
			}
		}
	}
	if !found {
		return text
	}
	var out strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			out.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			out.WriteString(Marker)
		}
	}
	return strings.ToValidUTF8(out.String(), "")
}

// Spellings returns a text as it is and, if they differ, in the two ways in which JSON usually writes it: with and without the
// signs of HTML escaped.
func Spellings(text string) []string {
	all := []string{text}
	for _, html := range []bool{true, false} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		_ = e.Encode(text) //nolint:errchkjson // texts always have an encoding, and a builder takes it
		if quoted := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`); !slices.Contains(all, quoted) {
			all = append(all, quoted)
		}
	}
	return all
}

// lower is strings.ToLower for ASCII only, so that positions stay the same.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
