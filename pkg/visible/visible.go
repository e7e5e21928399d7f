// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visible decides which characters of a text that somebody else wrote may reach a screen as they are. A model, a
// program or a stranger's server can put characters into a text that a reader does not see, or that a terminal takes for
// a command: control characters (C0, DEL and C1, among them ESC and U+009B), marks that change the direction, zero-width
// characters and tags.
//
//   - Text, Line and Writer show each of them as its escape, \u001b. It is the escape of JSON, so that output in JSON stays
//     the same value.
//   - Exact is stricter, for what a person decides about: it also shows tabs, line ends, joiners, and every space but one.
//   - Plain removes control characters, for texts that are stored, and JSON escapes them in documents.
//
// A line end is LF or CR LF. Joiners (U+200C, U+200D) stay between characters of the scripts and emoji that need them, and so
// do the two selectors of emoji.
package visible

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Control reports whether r is a control character, other than a tab and a line end.
func Control(r rune) bool { return r != '\t' && r != '\n' && unicode.IsControl(r) }

// blankBraille looks like a space, but Unicode classifies it as a symbol.
const blankBraille = '\u2800'

// The selectors choose how an emoji looks.
const textSelector, emojiSelector = '\ufe0e', '\ufe0f'

const nonJoiner, joiner = '\u200c', '\u200d'

// Hidden reports whether r is not seen, or acts on a terminal. Joiners are hidden.
func Hidden(r rune) bool {
	switch {
	case r < 0x7f:
		return Control(r)
	case r == textSelector, r == emojiSelector:
		return false
	}
	return unicode.IsControl(r) || r == blankBraille || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control)
}

// joined are the scripts whose words need joiners.
var joined = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
	unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
}

// joins reports whether a joiner may stand beside r: a letter of such a script, or a part of an emoji.
func joins(r rune) bool {
	return r > unicode.MaxLatin1 && r != utf8.RuneError && !Hidden(r) && (r == emojiSelector || unicode.In(r, unicode.So, unicode.Sk) || unicode.In(r, joined...))
}

// escape appends the escape of r: \uXXXX, twice for characters beyond U+FFFF, as in JSON.
func escape(b []byte, r rune) []byte {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// Text returns s with its hidden characters shown. Tabs and line ends stay.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	var b strings.Builder
	w := NewWriter(&b)
	_, _ = w.Write([]byte(s)) // a Builder cannot fail
	_ = w.Flush()
	return b.String()
}

// Line is Text for a text that is shown on one line: tabs and line ends become spaces.
func Line(s string) string {
	if strings.ContainsAny(s, "\t\r\n") {
		s = lineEnds.Replace(s)
	}
	return Text(s)
}

var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")

// Exact returns s with an escape for each character that is not seen or could change how the rest of the line looks:
// whatever Text shows, and tabs, line ends, joiners, selectors, and every space except the ordinary one.
func Exact(s string) string {
	if !strings.ContainsFunc(s, inexact) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !inexact(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func inexact(r rune) bool {
	return !unicode.IsPrint(r) || r == blankBraille ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control, unicode.Join_Control)
}

// Plain returns s without control characters, for texts that are stored and shown by any client: YAML cannot hold them, and a
// terminal obeys them. Codes that choose colours are removed whole. A carriage return becomes a line end.
func Plain(s string) string {
	if !strings.ContainsFunc(s, Control) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if n := colour(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\r' && !strings.HasPrefix(s[i+1:], "\n"):
			b.WriteByte('\n')
		case !Control(r):
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// JSON returns a document with an escape for each character in it that YAML cannot hold. JSON has escapes for the lowest
// already; the others are DEL, C1 and what is no character. The values stay the same.
func JSON(raw []byte) []byte {
	if bytes.IndexFunc(raw, unprintable) < 0 {
		return raw
	}
	b := make([]byte, 0, len(raw)+64)
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		if unprintable(r) {
			b = escape(b, r)
		} else {
			b = append(b, raw[:n]...)
		}
		raw = raw[n:]
	}
	return b
}

func unprintable(r rune) bool {
	return r >= 0x7f && (unicode.IsControl(r) || r == '\ufeff' || r == '\ufffe' || r == '\uffff')
}

// colour returns the length of the code at the beginning of s that chooses a colour (ESC [ 31 m); 0 if there is none.
func colour(s string) int {
	rest, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		if rest, ok = strings.CutPrefix(s, "\u009b"); !ok {
			return 0
		}
	}
	end := strings.TrimLeft(rest, "0123456789;:")
	if !strings.HasPrefix(end, "m") {
		return 0
	}
	return len(s) - len(end) + 1
}
