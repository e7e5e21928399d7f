// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// spelled are the ways in which programs write a value.
var spelled = map[string]func(string) string{
	"as it is":         func(v string) string { return v },
	"JSON":             quoted,
	"JSON twice":       func(v string) string { return quoted(quoted(v)) },
	"JSON, slashes":    func(v string) string { return strings.ReplaceAll(quoted(v), "/", `\/`) },
	"\\u":              everyUnit,
	"\\x":              func(v string) string { return everyByte(v, `\x%02x`) },
	"form":             url.QueryEscape,
	"path":             url.PathEscape,
	"percent":          func(v string) string { return everyByte(v, "%%%02X") },
	"percent twice":    func(v string) string { return url.QueryEscape(url.PathEscape(v)) },
	"HTML":             html.EscapeString,
	"base64":           func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64url":        func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) },
	"base64, a line":   func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v + "\n")) },
	"base64, 1 before": func(v string) string { return base64.StdEncoding.EncodeToString([]byte(":" + v)) },
	"base64, 2 before": func(v string) string { return base64.StdEncoding.EncodeToString([]byte("a:" + v)) },
	"base64 in JSON":   func(v string) string { return quoted(wrapped(base64.StdEncoding.EncodeToString([]byte(v)))) },
	"base64, wrapped":  func(v string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(v))) },
	"hex":              func(v string) string { return hex.EncodeToString([]byte(v)) },
	"HEX":              func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	"diff":             func(v string) string { return "+" + strings.ReplaceAll(v, "\n", "\n+") },
	"indented, CRLF":   func(v string) string { return "  " + strings.ReplaceAll(v, "\n", "\r\n  ") },
}

func everyByte(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

func everyUnit(v string) string {
	var b strings.Builder
	for _, r := range v {
		if r > 0xffff {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// quoted returns a text as JSON, without the quotes.
func quoted(v string) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return v
	}
	return string(raw[1 : len(raw)-1])
}

func wrapped(v string) string {
	var b strings.Builder
	for len(v) > 76 {
		b.WriteString(v[:76] + "\n")
		v = v[76:]
	}
	return b.String() + v
}

// given are values that nothing but their owner says to be secret.
var given = []string{
	"swordfish", "correct horse battery staple", "x9K2", `p/"q"&<r>\s`, "пароль-от-дома", "a%41b\"c\\u0041d", "0123456789",
	"first line of it\nsecond line, longer than the first one by a good deal\nend", "  \tpadded value\n\n", "user: bob-the-builder\npin: 4711\n  nested: Zk4Qx7hunter2",
	numbered(40) + "tail",
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Line %d of a long document that is secret as a whole.\n", i*i)
	}
	return b.String()
}

// TestKnownSpellings: a value that is known is removed however it is spelled, with each of its lines.
func TestKnownSpellings(t *testing.T) {
	t.Parallel()
	for _, v := range given {
		known := redact.KnownOf(v)
		trimmed := strings.TrimSpace(v)
		for name, spell := range spelled {
			text := spell(trimmed)
			if len(v) < 6 && strings.Contains(name, "before") {
				continue // base64 has few letters of it alone
			}
			got := known.Remove("It says <<" + text + ">> there.\n")
			rest := strings.NewReplacer(redact.Marker, "", "%0A", "").Replace(strings.TrimSuffix(strings.TrimPrefix(got, "It says <<"), ">> there.\n"))
			if left := strings.Trim(rest, "+> \t\r\nabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=\\"); left != "" || longestWord(rest) > 4 {
				t.Errorf("%q, %s: %q became %q", v, name, text, got)
			}
		}
		for line := range strings.Lines(trimmed) {
			if line = strings.TrimSpace(line); len(line) >= 8 && strings.Contains(known.Remove("x "+line+" y"), line) {
				t.Errorf("%q: its line %q stays", v, line)
			}
		}
	}
}

func longestWord(s string) int {
	longest := 0
	for w := range strings.FieldsSeq(s) {
		longest = max(longest, len(w))
	}
	return longest
}

// TestKnownCuts: where a text begins or ends with a part of a value, it is removed.
func TestKnownCuts(t *testing.T) {
	t.Parallel()
	const v = "Zk4Qx7hunter2-and-some-more"
	known := redact.KnownOf(v)
	for n := 8; n <= len(v); n++ {
		for text, want := range map[string]string{
			"it says " + v[:n]:        "it says " + redact.Marker,
			v[len(v)-n:] + " it says": redact.Marker + " it says",
			"it says " + base64.StdEncoding.EncodeToString([]byte(v))[:n]: "it says " + redact.Marker,
		} {
			if got := known.Remove(text); got != want {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// TestKnownStream: a value that comes to a log in pieces is removed from it.
func TestKnownStream(t *testing.T) {
	t.Parallel()
	for _, v := range given {
		for name, spell := range spelled {
			text := spell(strings.TrimSpace(v))
			for size := 1; size <= len(text); size = size*2 + 1 {
				stream := redact.Stream{Seen: &redact.Seen{Known: redact.KnownOf(v)}}
				var out strings.Builder
				for rest := "begin " + text + " end\n"; rest != ""; {
					n := min(size, len(rest))
					out.WriteString(stream.Write(rest[:n]))
					rest = rest[n:]
				}
				got := out.String() + stream.Flush(true)
				want := redact.KnownOf(v).Remove("begin " + text + " end\n")
				if got = strings.ReplaceAll(got, redact.Marker+"\n"+redact.Marker, redact.Marker); strings.Count(got, redact.Marker) > 2*strings.Count(want, redact.Marker) || longestWord(strings.ReplaceAll(got, redact.Marker, " ")) > max(5, longestWord(strings.ReplaceAll(want, redact.Marker, " "))) {
					t.Errorf("%q, %s, in pieces of %d: %q, want %q", v, name, size, got, want)
				}
			}
		}
	}
}

// TestKnownJSON: JSON stays JSON, and what is removed is gone from what it says.
func TestKnownJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ value, doc, want string }{
		{"123456", `{"a":123456,"b":"x123456"}`, `{"a":"[REDACTED]","b":"x[REDACTED]"}`},
		{"nsecret123", `{"a":"\nsecret123 and nsecret123"}`, `{"a":"\nsecret123 and [REDACTED]"}`},
		{`{"pin":4711,"x":[1,2]}`, `{"doc":{"pin":4711,"x":[1,2]}}`, `"[REDACTED]"`},
		{`","b":"`, `{"a":"1","b":"2"}`, `"[REDACTED]"`},
		{"swordfish", `{"swordfish":"the \u0073wordfish"}`, `{"[REDACTED]":"the [REDACTED]"}`},
	} {
		if got := redact.KnownOf(tc.value).JSON(tc.doc); got != tc.want {
			t.Errorf("%q in %s: %s, want %s", tc.value, tc.doc, got, tc.want)
		}
	}
}

// TestHidable: values that cannot be removed, because every text has them.
func TestHidable(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{
		"": false, "abc": false, "12345": false, "hello": false, " hello\n": false, "true": false, "Production": false, "password": false, "aaaaaaaaaa": false, "REDACTED": false,
		"a\nb\nc\nd": false, "abcd\nefgh\nijkl": false, "one\n{\n}\n": false,
		"x9K2": true, "p@ss": true, "swordfish": true, "123456": true, "abcd\nefgh\nlonger line": true,
	} {
		if got := redact.Hidable(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
		if text := "It is ok: " + v + " true"; !want && len(strings.TrimSpace(v)) < 7 && redact.KnownOf(v).Remove(text) != text {
			t.Errorf("%q is removed", v)
		}
	}
}

// TestKnownInnocent: other texts stay.
func TestKnownInnocent(t *testing.T) {
	t.Parallel()
	known := redact.KnownOf("swordfish", "https://bob:pw@db.example.com:5432/app", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n")
	for _, text := range []string{
		"a fish and a sword", "GET https://", "see https://bob", "-----BEGIN PRIVATE KEY-----\nother\n-----END PRIVATE KEY-----", "app", "db.example.com:5432", "%zz \\q &x; 100%", "\\",
	} {
		if got := known.Remove(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// FuzzKnown puts a value that is known into arbitrary text, in some spelling. It must not survive, redacting the result must not
// change it, and JSON must stay JSON.
func FuzzKnown(f *testing.F) {
	var names []string
	for name := range spelled {
		names = append(names, name)
	}
	f.Add("a", "b", uint8(0), uint8(0))
	f.Add(`{"a":"`, `","b":[1,true]}`, uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, before, after string, which, spelling uint8) {
		v := strings.TrimSpace(given[int(which)%len(given)])
		known := redact.KnownOf(v)
		text := spelled[names[int(spelling)%len(names)]](v)
		got := known.Remove(before + "\n" + text + "\n" + after)
		if again := known.Remove(got); again != got {
			t.Fatalf("%q -> %q -> %q", before+text+after, got, again)
		}
		for line := range strings.Lines(v) {
			if line = strings.TrimSpace(line); len(line) >= 8 && (strings.Contains(got, line) || strings.Contains(got, text)) {
				t.Fatalf("%q survives: %q -> %q", line, before+text+after, got)
			}
		}
		raw, err := json.Marshal(map[string]any{"x": strings.ToValidUTF8(before+text+after, "?"), "n": 123456})
		if err != nil {
			t.Fatal(err)
		}
		if clean := known.JSON(string(raw)); !json.Valid([]byte(clean)) {
			t.Fatalf("%s -> %s", raw, clean)
		}
	})
}
