// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolkit

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
