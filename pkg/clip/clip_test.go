// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package clip

import (
	"testing"
)

// TestWhole: a text that is cut inside a character ends before it, and any other is as it was.
func TestWhole(t *testing.T) {
	const text = "aä€😀"
	ends := map[int]int{0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 5: 3, 6: 6, 7: 6, 8: 6, 9: 6, 10: 10}
	for cut := range len(text) + 1 {
		if got := string(Whole([]byte(text[:cut]))); got != text[:ends[cut]] {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	for _, other := range []string{"\xff", "a\x80", "\x80\x80\x80\x80"} {
		if got := string(Whole([]byte(other))); got != other {
			t.Errorf("%q: %q", other, got)
		}
	}
}

// TestText: the beginning of a text has at most as many bytes as are allowed, and no part of a character at its end.
func TestText(t *testing.T) {
	const text = "aä€😀"
	for limit, want := range map[int]string{-1: "", 0: "", 1: "a", 2: "a", 3: "aä", 5: "aä", 6: "aä€", 9: "aä€", 10: text, 11: text} {
		if got := Text(text, limit); got != want {
			t.Errorf("at most %d bytes: %q", limit, got)
		}
	}
	if got := Text("\x80\x80\x80\x80\x80", 4); got != "" {
		t.Errorf("no character begins: %q", got)
	}
}
