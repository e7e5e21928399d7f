// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzFinder(f *testing.F) {
	f.Add("abcdef abcd", "abcde", "abcd", "bcdef")
	f.Add("xaaaaaax", "aaaaa", "xaaaa", "aaaa")
	f.Add("0123456789abcdef89abcdef0", "0123456789", "89abcdef", "f89abcde")
	f.Fuzz(func(t *testing.T, s, a, b, c string) {
		if len(a) < gramBytes || len(b) < gramBytes || len(c) < gramBytes || len(a) < len(b) || len(b) < len(c) {
			return
		}
		want := strings.NewReplacer(a, Marker, b, Marker, c, Marker).Replace(s)
		if got := finderOf([]string{c, b, a}).replace(s); got != want {
			t.Errorf("%q without %q, %q and %q is %q, want %q", s, a, b, c, got, want)
		}
	})
}

func TestValidJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, s := range []string{
		"", " ", "{}", " [ ] ", `{"a":1,}`, `{"a" 1}`, `{a:1}`, "[1,]", "[1 2]", "[,1]", "-", "-0", "01", "1.", ".5", "1e", "1e+", "1E-9", "1.5e3x", "+1",
		"true", "tru", "truex", "null ", "nul", `"`, `"a`, `"\`, `"\u12"`, `"\u12g4"`, `"\u12aF"`, `"\x"`, `"\/\b\f\n\r\t\\\""`, "\"a\tb\"", "\"1234567\n\"",
		"\"\x7f\xff\"", `"12345678\"90123456"`, `"1234567é"`, `{"a":{"b":[{}]}} x`, deep(maxNesting), deep(maxNesting + 1), "\u00a0{}", "[1]\v",
	} {
		if got, want := isJSON(s), json.Valid([]byte(s)); got != want {
			t.Errorf("%.40q: %v, want %v", s, got, want)
		}
	}
	for s, want := range map[string]bool{`{"a b":[1,"c d"]}`: false, `{"a": 1}`: true, "[1]\n": true, "[ ]": true} {
		if valid, spaced := validJSON(s); !valid || spaced != want {
			t.Errorf("%s: white space is %v, want %v", s, spaced, want)
		}
	}
}
