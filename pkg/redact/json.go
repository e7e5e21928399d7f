// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is returned for input that is not exactly one JSON value.
var ErrSyntax = errors.New("not valid JSON")

// JSON returns b, one JSON value, without the secrets it contains, and whether any was removed. The value
// under a key that names a secret is replaced by the marker. Exceptions are numbers under the names of
// token counts, null, booleans and the empty string. All other strings are treated as by Text. Everything
// that is not replaced keeps its bytes.
func JSON(b []byte) ([]byte, bool, error) {
	s := string(b)
	if valid, _ := validJSON(s); !valid {
		return nil, false, ErrSyntax
	}
	out, changed, _ := settleJSON(s, false)
	if !changed {
		return b, false, nil
	}
	return []byte(out), true, nil
}

// settleJSON repeats the walk over valid JSON until it changes nothing. found are the removed values that must not occur
// elsewhere, either. They hold no character that JSON writes in another way.
func settleJSON(s string, queries bool) (out string, changed bool, found []string) {
	out = s
	for range maxPasses {
		w := walker{in: out, queries: queries, found: found}
		w.value("", false)
		found = w.found
		more := false
		if w.changed || changed {
			var clean string
			if clean, more = again(w.result(), found); more {
				out, changed = clean, true
				continue
			}
		}
		if !w.changed {
			return out, changed, found
		}
		out, changed = w.result(), true
	}
	return quotedMarker, true, found
}

// walker makes one pass over valid JSON. It notes the removed spans and joins the rest at the end, so that
// a later member can cause the removal of an earlier one.
type walker struct {
	in      string
	i       int
	cuts    []jsonCut
	changed bool
	depth   int // nesting depth of JSON in strings
	// queries is set to keep the queries of URLs.
	queries bool
	// found are the removed values that must not occur elsewhere, either.
	found []string
}

// jsonCut is a span of the input and its replacement.
type jsonCut struct {
	from, to int
	with     string
}

const quotedMarker = `"` + Marker + `"`

func (w *walker) result() string {
	if !w.changed {
		return w.in
	}
	var out strings.Builder
	out.Grow(len(w.in) + len(w.cuts)*len(quotedMarker))
	done := 0
	for _, c := range w.cuts {
		if c.from < done {
			continue // inside a span that was removed as a whole
		}
		out.WriteString(w.in[done:c.from])
		out.WriteString(c.with)
		done = c.to
	}
	out.WriteString(w.in[done:])
	return out.String()
}

func (w *walker) cut(from, to int, with string) {
	if w.in[from:to] == with {
		return
	}
	w.cuts = append(w.cuts, jsonCut{from, to, with})
	w.changed = true
	if with == quotedMarker && w.in[from] == '"' {
		w.found = noted(w.found, unquote(w.in[from:to]))
	}
}

func (w *walker) space() {
	for w.i < len(w.in) && (w.in[w.i] == ' ' || w.in[w.i] == '\n' || w.in[w.i] == '\t' || w.in[w.i] == '\r') {
		w.i++
	}
}

// value handles the value at w.i and moves w.i to after it. If keyed is set, the value is under key.
func (w *walker) value(key string, keyed bool) {
	w.space()
	if keyed {
		if kind := keyKind(key); kind != notSecret && w.secret(kind, key) {
			return
		}
	}
	switch w.in[w.i] {
	case '{':
		w.object()
	case '[':
		w.array()
	case '"':
		w.text()
	default:
		w.scalar()
	}
}

// secret removes the value at w.i if its key requires that, and reports whether it has handled the value.
func (w *walker) secret(kind secretKind, key string) bool {
	from := w.i
	c := w.in[from]
	switch {
	case kind < secretCount:
		if c != '"' {
			return false
		}
		if w.str(); suspicious(kind, key, unquote(w.in[from:w.i])) {
			w.cut(from, w.i, quotedMarker)
			return true
		}
		w.i = from
		return false
	case c == 'n' || c == 't' || c == 'f':
		return false
	case (kind == secretCount || kind == secretPass) && (c == '-' || c >= '0' && c <= '9'):
		return false
	case c == '{':
		var buf [2 * keyLimit]byte
		if detailKeys[string(normalize(buf[:0], key))] {
			return false
		}
	}
	w.skip()
	if c == '"' && (w.i-from == 2 || version(w.in[from+1:w.i-1]) && !endsInPassword(key)) {
		return true
	}
	w.cut(from, w.i, quotedMarker)
	return true
}

// member is a value that another member may cause to be removed. cuts is the number of cuts before it.
type member struct{ from, to, cuts int }

// object handles the members of an object. {"name": "API_KEY", "value": "…"}, as in lists of variables and
// headers, also counts as a key and its value. The data of a Kubernetes Secret is secret.
func (w *walker) object() {
	w.i++
	named, secret := notSecret, false
	var value member
	var data []member
	for w.space(); w.in[w.i] != '}'; w.space() {
		if w.in[w.i] == ',' {
			w.i++
			w.space()
		}
		key := w.text()
		w.space()
		w.i++ // ':'
		w.space()
		m := member{from: w.i, cuts: len(w.cuts)}
		w.value(key, true)
		m.to = w.i
		if w.in[m.from] == '{' && (key == "data" || key == "stringData") {
			data = append(data, m)
		}
		if w.in[m.from] != '"' || len(w.cuts) > m.cuts+1 {
			continue
		}
		switch strings.ToLower(key) {
		case "name", "key", "header":
			named = max(named, keyKind(unquote(w.in[m.from:m.to])))
		case "value":
			if value.from == 0 && m.to-m.from > 2 {
				value = m
			}
		case "kind":
			secret = secret || w.in[m.from:m.to] == `"Secret"`
		}
	}
	w.i++
	if !secret {
		data = nil
	}
	if value.from > 0 && (named >= secretValue || named < secretCount && suspicious(named, "value", unquote(w.in[value.from:value.to]))) {
		data = append(data, value)
	}
	w.condemnAll(data)
}

// condemnAll removes members that the walk has already passed.
func (w *walker) condemnAll(data []member) {
	slices.SortFunc(data, func(a, b member) int { return b.from - a.from }) // last one first, because each cut moves those after it
	for _, m := range data {
		if v := w.in[m.from:m.to]; len(v) > 2 && v != quotedMarker {
			w.condemn(m)
		}
	}
}

// condemn removes a member that the walk has already passed.
func (w *walker) condemn(m member) {
	at := m.cuts
	if at < len(w.cuts) && w.cuts[at].from == m.from {
		w.cuts[at].with = quotedMarker
		return
	}
	w.cuts = append(w.cuts, jsonCut{})
	copy(w.cuts[at+1:], w.cuts[at:])
	w.cuts[at] = jsonCut{m.from, m.to, quotedMarker}
	w.changed = true
	if w.in[m.from] == '"' {
		w.found = noted(w.found, unquote(w.in[m.from:m.to]))
	}
}

// array handles the elements of an array. A string after "--password" is treated as a password.
func (w *walker) array() {
	w.i++
	flagged := false
	for w.space(); w.in[w.i] != ']'; w.space() {
		if w.in[w.i] == ',' {
			w.i++
			w.space()
		}
		from := w.i
		if flagged && w.in[from] == '"' && !strings.HasPrefix(w.in[from:], `"-`) {
			w.skip()
			if w.i-from > 2 {
				w.cut(from, w.i, quotedMarker)
			}
			flagged = false
			continue
		}
		w.value("", false)
		flagged = strings.HasPrefix(w.in[from:w.i], `"--`) &&
			strings.IndexByte(w.in[from:w.i], '=') < 0 && strings.IndexByte(w.in[from:w.i], ' ') < 0 &&
			keyKind(unquote(w.in[from:w.i])) >= secretValue
	}
	w.i++
}

// text handles the string at w.i and returns its original text.
func (w *walker) text() string {
	from := w.i
	w.skip()
	s := unquote(w.in[from:w.i])
	if clean, changed := w.clean(s); changed {
		w.cut(from, w.i, quote(clean))
	}
	return s
}

// maxDepth bounds how many levels of JSON in strings are treated as JSON.
const maxDepth = 4

// clean makes one pass over a string. A string that contains JSON, such as the arguments of a tool, is
// treated as JSON.
func (w *walker) clean(s string) (string, bool) {
	if v := strings.TrimSpace(s); w.depth < maxDepth && len(v) > 4 && (v[0] == '{' || v[0] == '[') && isJSON(v) {
		inner := walker{in: v, depth: w.depth + 1, queries: w.queries, found: w.found}
		inner.value("", false)
		w.found = inner.found
		if !inner.changed {
			return s, false
		}
		return inner.result(), true
	}
	out, changed, found := scan(s, w.queries, w.found)
	w.found = found
	return out, changed
}

// scalar skips a number, true, false or null.
func (w *walker) scalar() {
	for w.i < len(w.in) && strings.IndexByte(",]} \t\r\n", w.in[w.i]) < 0 {
		w.i++
	}
}

// skip skips one value of any kind.
func (w *walker) skip() {
	switch w.in[w.i] {
	case '"':
		w.str()
	case '{', '[':
		depth := 0
		for {
			switch w.in[w.i] {
			case '"':
				w.str()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			w.i++
			if depth == 0 {
				return
			}
		}
	default:
		w.scalar()
	}
}

// str skips a string.
func (w *walker) str() {
	for w.i = plainEnd(w.in, w.i+1); w.in[w.i] != '"'; w.i = plainEnd(w.in, w.i+2) {
	}
	w.i++
}

// unquote returns the text of a valid JSON string.
func unquote(b string) string {
	inner := b[1 : len(b)-1]
	at := strings.IndexByte(inner, '\\')
	if at < 0 {
		return inner
	}
	var out strings.Builder
	out.Grow(len(inner))
	for ; at >= 0; at = strings.IndexByte(inner, '\\') {
		out.WriteString(inner[:at])
		c := inner[at+1]
		inner = inner[at+2:]
		if c != 'u' {
			out.WriteByte(unescaped(c))
			continue
		}
		r := codePoint(inner)
		inner = inner[4:]
		if utf16.IsSurrogate(r) {
			second := rune(-1)
			if strings.HasPrefix(inner, `\u`) {
				second = codePoint(inner[2:])
			}
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				inner = inner[6:]
			}
		}
		out.WriteRune(r)
	}
	out.WriteString(inner)
	return out.String()
}

// unescaped returns what the letter after a backslash stands for.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c // a quote, a slash or a backslash
}

// codePoint returns the value of the four hexadecimal digits at the start of s.
func codePoint(s string) rune {
	n, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil { // valid JSON has four digits
		return utf8.RuneError
	}
	return rune(n)
}

// quote returns s as a JSON string without escaping for HTML.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return quotedMarker
	}
	return strings.TrimSuffix(b.String(), "\n")
}
