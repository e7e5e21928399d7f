// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/clip"
)

// text checks that a body is UTF-8 as it arrives. JSON decoders put U+FFFD in the place of other bytes, so an object would be stored
// that nobody sent.
type text struct {
	begun [utf8.UTFMax]byte // the beginning of a character whose rest is in the next part
	n     int
}

// add takes the next part, and reports whether it is text.
func (t *text) add(part []byte) bool {
	for t.n > 0 && !utf8.FullRune(t.begun[:t.n]) {
		if len(part) == 0 {
			return true
		}
		t.begun[t.n], part = part[0], part[1:]
		t.n++
	}
	if !utf8.Valid(t.begun[:t.n]) {
		return false
	}
	end := len(clip.Whole(part))
	t.n = copy(t.begun[:], part[end:])
	return utf8.Valid(part[:end])
}

// whole reports whether the text ends with a whole character.
func (t *text) whole() bool { return utf8.Valid(t.begun[:t.n]) }
