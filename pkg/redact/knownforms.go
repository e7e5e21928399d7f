// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits of what a value must have to be searched for, in bytes.
const (
	// shortestMixed is the length of the shortest value with digits and letters, or with signs; shortestWord is that of the
	// shortest other one. Shorter ones would match everywhere.
	shortestMixed = 4
	shortestWord  = 6
	// shortestLine is the same as shortestWord for one line of several.
	shortestLine = 8
	// shortestCut is the length of the shortest beginning or end of a value that is removed where a text was cut.
	shortestCut = 8
	// longestForm bounds what is compared at a cut.
	longestForm = 64 << 10
	// maxForms bounds how many values and lines are searched for.
	maxForms = 50_000
)

// Hidable reports whether a value is one that Known removes: neither too short nor so common that every text would have it.
func Hidable(value string) bool {
	v := strings.TrimSpace(value)
	if !hidable(v, shortestWord) {
		return false
	}
	if !strings.Contains(v, "\n") {
		return true
	}
	for line := range strings.Lines(v) {
		if hidableLine(strings.TrimSpace(line)) {
			return true
		}
	}
	return false // each line could be shown by itself
}

// hidableLine is Hidable for one line of several. A setting whose value is a short or common word, such as "kind: Config", is
// none.
func hidableLine(line string) bool {
	if at := strings.IndexAny(line, ":="); at > 0 && all(line[:at], keyByte) {
		if word := strings.TrimSpace(line[at+1:]); all(word, alnum) && strings.Trim(word, "0123456789") == word && !hidable(word, shortestWord) {
			return false
		}
	}
	return hidable(line, shortestLine)
}

// hidable is Hidable for a trimmed value.
func hidable(v string, shortest int) bool {
	if len(v) < shortestMixed || strings.Contains(Marker, v) || commonValues[strings.ToLower(v)] || strings.HasPrefix(v, pemBegin) || strings.HasPrefix(v, pemEnd) {
		return false
	}
	different := 0
	for i := range len(v) {
		if strings.IndexByte(v[:i], v[i]) < 0 {
			different++
		}
		if different == 3 {
			break
		}
	}
	if different < 3 {
		return false
	}
	if len(v) >= shortest {
		return true
	}
	digits, capitals, small := count(v)
	return digits > 0 && capitals+small > 0 || strings.ContainsAny(v, "!@#$%^&*<>\"'=?~|\\")
}

// commonValues are values that texts have for other reasons.
var commonValues = setOf(`true false null none undefined default production staging development testing localhost 127.0.0.1 0.0.0.0
	password passwd secret secrets token apikey username admin administrator root user postgres postgresql mysql mariadb redis mongodb
	kubernetes docker github gitlab enabled disabled string number integer object boolean array content message messages error errors
	warning success failed started completed attempt exitcode reason result results iteration provider model summary severity
	toolname toolcallid arguments output input command commands example examples sample latest stable master develop
	public private internal external service services server client database account accounts project version config
	http:// https:// application system status running pending succeeded cancelled worker agent session
	us-east-1 us-east-2 us-west-1 us-west-2 eu-west-1 eu-central-1 apiversion metadata namespace`)

// form is a text that stands for a value, or for a part of one. It has no line ends: those of a text that has it do not count.
type form struct {
	text string
	// ends are where the lines of text end. A form without is encoded: each part of it counts.
	ends []int
	// closed is set if the value has several lines and ends the last one.
	closed bool
	// of is the value.
	of string
}

// formsOf returns the forms of a value, but for those that unescape finds.
func formsOf(value string) []form {
	v := strings.TrimSpace(value)
	if !hidable(v, shortestWord) {
		return nil
	}
	forms := plainForms(v, v)
	for i := range forms {
		forms[i].closed = len(forms[i].ends) > 1 && strings.HasSuffix(value, "\n")
	}
	if !Hidable(v) {
		forms = append(forms, form{text: v, ends: []int{len(v)}, of: v}) // all of its lines in a row
	}
	for _, inner := range innerValues(v) {
		forms = append(forms, plainForms(inner, inner)...)
	}
	return append(forms, encodedForms(v)...)
}

// plainForms returns a text as it is, as unescape leaves it, and as a form of a page writes it.
func plainForms(text, of string) []form {
	all := []string{text}
	add := func(other string) {
		if !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	if v, escaped := unescape(text); escaped {
		add(v.text)
	}
	if strings.Contains(text, " ") {
		add(strings.ReplaceAll(text, " ", "+"))
	}
	add(strings.ToValidUTF8(text, "\uFFFD"))
	forms := make([]form, 0, len(all))
	for _, text := range all {
		f := form{of: of}
		var b strings.Builder
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				b.WriteString(line)
				f.ends = append(f.ends, b.Len())
			}
		}
		f.text = b.String()
		forms = append(forms, f)
	}
	return forms
}

// encodedForms returns base64 of a value, in both alphabets and wherever in an encoded text it begins, and its hexadecimal
// digits.
func encodedForms(v string) []form {
	var forms []form
	add := func(text string) {
		if len(text) >= shortestWord && !slices.ContainsFunc(forms, func(f form) bool { return f.text == text }) {
			forms = append(forms, form{text: text, of: v})
		}
	}
	for shift := range 3 {
		// What is left out of a text in base64 holds bits of what is before or after the value, too.
		plain := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00"[:shift] + v))
		plain = plain[[...]int{0, 2, 3}[shift]:]
		if (shift+len(v))%3 > 0 {
			plain = plain[:len(plain)-1]
		}
		add(plain)
		add(strings.NewReplacer("+", "-", "/", "_").Replace(plain))
	}
	if len(v) < 2*shortestWord {
		for _, ending := range []string{"", "\n"} {
			for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
				add(e.EncodeToString([]byte(v + ending)))
			}
		}
	}
	digits := fmt.Sprintf("%x", v)
	add(digits)
	add(strings.ToUpper(digits))
	return forms
}

// innerValues returns what a value holds that is a secret by itself: the strings of a document, and the values of settings.
func innerValues(v string) []string {
	var all []string
	add := func(s string) {
		s = strings.TrimSpace(s)
		if s != v && (distinct(s) || len(s) >= shortestLine && strings.Contains(s, "\n")) && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if (v[0] == '{' || v[0] == '[') && isJSON(v) {
		d := json.NewDecoder(strings.NewReader(v))
		for {
			t, err := d.Token()
			if err != nil {
				return all
			}
			if text, ok := t.(string); ok {
				add(text)
			}
		}
	}
	if strings.Contains(v, "\n") {
		for line := range strings.Lines(v) {
			if at := strings.IndexAny(line, "=:"); at > 0 && len(all) < maxForms {
				add(strings.Trim(strings.TrimSpace(line[at+1:]), `"'`))
			}
		}
	}
	return all
}

// piece is a part of a form by which it is found: a line, or some of an encoded form.
type piece struct {
	form, at int
}

// Encoded forms are found by a piece of pieceBytes at every pieceBytes of them; at every sparseStep of those of long values, which
// is less than a line of base64.
const (
	pieceBytes = 12
	sparseStep = 48
	sparseFrom = 8 << 10
)

// pieces passes the parts by which a form is found to add.
func (f form) pieces(add func(from, to int)) {
	if f.ends == nil {
		step := pieceBytes
		if len(f.text) > sparseFrom {
			step = sparseStep
		}
		for from := 0; from+pieceBytes <= len(f.text); from += step {
			if hidable(f.text[from:from+pieceBytes], shortestWord) {
				add(from, from+pieceBytes)
			}
		}
		if len(f.text) < pieceBytes {
			add(0, len(f.text))
		}
		return
	}
	from := 0
	for _, to := range f.ends {
		line := f.text[from:to]
		if len(f.ends) > 1 && hidableLine(line) || len(f.ends) == 1 && hidable(line, shortestWord) {
			add(from, to)
		}
		from = to
	}
}
