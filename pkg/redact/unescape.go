// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"sort"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// view is a text as a reader would see it who takes escapes for what they stand for. at says where its bytes come from.
type view struct {
	text string
	at   []origin
}

// origin says that the bytes of a view from position to on come, one by one, from position from of the text, up to the next
// origin.
type origin struct{ to, from int }

// source returns the position in the text of a position in the view.
func (v view) source(i int) int {
	n := sort.Search(len(v.at), func(n int) bool { return v.at[n].to > i })
	if n == 0 {
		return i
	}
	return v.at[n-1].from + i - v.at[n-1].to
}

// unescape returns s without the escapes of JSON, of URLs, of HTML and of strings of programs, and whether it had any. An
// escape within an escape becomes an escape.
func unescape(s string) (v view, escaped bool) {
	i := strings.IndexAny(s, `\%&`)
	if i < 0 {
		return view{text: s}, false
	}
	var out strings.Builder
	done := 0
	for ; i < len(s); i++ {
		n := 0
		var text string
		switch s[i] {
		case '\\':
			text, n = backslash(s[i:])
		case '%':
			text, n = percent(s[i:])
		case '&':
			text, n = entity(s[i:])
		}
		if n == 0 {
			continue
		}
		if out.Cap() == 0 {
			out.Grow(len(s))
		}
		out.WriteString(s[done:i])
		v.at = append(v.at, origin{out.Len(), i})
		out.WriteString(text)
		done = i + n
		v.at = append(v.at, origin{out.Len(), done})
		i = done - 1
	}
	if done == 0 {
		return view{text: s}, false
	}
	out.WriteString(s[done:])
	v.text = out.String()
	return v, true
}

// backslash returns what the escape at the start of s stands for, and its length; 0 if it is none.
func backslash(s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	switch c := s[1]; {
	case c == 'u':
		return unicodeEscape(s)
	case c == 'x' && len(s) >= 4 && all(s[2:4], hex):
		return hexByte(s[2:4]), 4
	case strings.IndexByte("nrtbf", c) >= 0:
		return string(unescaped(c)), 2
	case c > ' ' && c < 0x7f && !is(c, alnum):
		return s[1:2], 2
	}
	return "", 0
}

// unicodeEscape is backslash for \u1234 and for the pairs of these.
func unicodeEscape(s string) (string, int) {
	if len(s) < 6 || !all(s[2:6], hex) {
		return "", 0
	}
	r := codePoint(s[2:])
	if utf16.IsSurrogate(r) && len(s) >= 12 && s[6:8] == `\u` && all(s[8:12], hex) {
		if pair := utf16.DecodeRune(r, codePoint(s[8:])); pair != utf8.RuneError {
			return string(pair), 12
		}
	}
	return string(r), 6
}

// percent is backslash for %2F.
func percent(s string) (string, int) {
	if len(s) < 3 || !all(s[1:3], hex) {
		return "", 0
	}
	return hexByte(s[1:3]), 3
}

func hexByte(s string) string {
	n, err := strconv.ParseUint(s, 16, 8)
	if err != nil { // hex has two digits
		return s
	}
	return string([]byte{byte(n)})
}

// entities are the names by which HTML writes its signs.
var entities = [...]struct{ name, text string }{{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", `"`}, {"&apos;", "'"}}

// entity is backslash for &amp; and &#38;.
func entity(s string) (string, int) {
	for _, e := range entities {
		if strings.HasPrefix(s, e.name) {
			return e.text, len(e.name)
		}
	}
	if len(s) < 4 || s[1] != '#' {
		return "", 0
	}
	from, base, digits := 2, 10, digit
	if s[2]|0x20 == 'x' {
		from, base, digits = 3, 16, hex
	}
	to := run(s[:min(len(s), from+8)], from, digits)
	n, err := strconv.ParseUint(s[from:to], base, 32)
	if err != nil || n == 0 || n > utf8.MaxRune || to == len(s) || s[to] != ';' {
		return "", 0
	}
	return string(rune(n)), to + 1
}
