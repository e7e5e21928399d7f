// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import "testing"

// TestUTF8: a text is read as its byte order mark says, or else as its content type does.
func TestUTF8(t *testing.T) {
	for _, c := range [][3]string{
		{"plain ä", "", "plain ä"},
		{"\ufeff{}", "application/json", "{}"},
		{"\ufeffä", "text/plain; charset=iso-8859-1", "ä"}, // the mark comes first
		{"\xff\xfea\x00\xe4\x00", "application/json", "aä"},
		{"\xfe\xff\x00a\x00\xe4", "application/json; charset=utf-8", "aä"},
		{"a\x00\xe4\x00", "text/plain; charset=UTF-16LE", "aä"},
		{"caf\xe9 \x80", `text/plain; charset="windows-1252"`, "café €"},
		{"\x82\xa0", "text/plain; charset=shift_jis", "あ"},
		{"\xff", "text/plain", "\uFFFD"},
		{"ä", "text/plain; charset=of-its-own", "ä"},
		{"ä", "text/plain; charset=", "ä"},
		{"ä", ";;", "ä"},
		{"", "text/plain; charset=utf-16", ""},
	} {
		if got := string(UTF8([]byte(c[0]), c[1])); got != c[2] {
			t.Errorf("%q as %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}

// TestWholeRunes: a text that is cut inside a character ends before it, and any other is as it was.
func TestWholeRunes(t *testing.T) {
	const text = "aä€😀"
	ends := map[int]int{0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 5: 3, 6: 6, 7: 6, 8: 6, 9: 6, 10: 10}
	for cut := range len(text) + 1 {
		if got := string(WholeRunes([]byte(text[:cut]))); got != text[:ends[cut]] {
			t.Errorf("cut at %d: %q", cut, got)
		}
	}
	for _, other := range []string{"\xff", "a\x80", "\x80\x80\x80\x80"} {
		if got := string(WholeRunes([]byte(other))); got != other {
			t.Errorf("%q: %q", other, got)
		}
	}
}
