// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"unicode/utf8"
)

// However a text is cut into parts, it is UTF-8 or not.
func FuzzText(f *testing.F) {
	for _, s := range []string{"café", "€😀x", "\xe9", "a\xe2\x82", "\xf0\x9f", "\xed\xa0\x80", "\x80", ""} {
		f.Add([]byte(s), 1)
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, all []byte, size int) {
		size = max(1, size%7)
		check, good := &text{}, true
		for rest := all; len(rest) > 0 && good; {
			n := min(size, len(rest))
			good = check.add(rest[:n])
			rest = rest[n:]
		}
		if good = good && check.whole(); good != utf8.Valid(all) {
			t.Errorf("%q in parts of %d: %v", all, size, good)
		}
	})
}
