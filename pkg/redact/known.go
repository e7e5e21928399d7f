// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"maps"
	"slices"
	"strings"
)

// Known removes values that are secrets whatever they look like, such as those that a run was given. It removes
//
//   - a value without the white space around it, and each of its lines by itself, except short ones; these only where they
//     follow another line of the value;
//   - what a value holds that can be nothing but a secret: the strings of a JSON document, the values of settings;
//   - base64, base64url and hexadecimal digits of a value, or a part of them, over line ends;
//   - all of these with the escapes of JSON, URLs, HTML and strings of programs, up to maxEscapes deep;
//   - the beginning or the end of a value where the text begins or ends with it, because the text may have been cut there.
//
// Values that Hidable rejects are not removed. The zero value holds none.
type Known struct{ k *knownValues }

type knownValues struct {
	forms  []form
	finder *finder
	// pieces holds what the finder's values are parts of, up to maxPlaces, and endings the ends of lines and forms by their last
	// gram.
	pieces  map[string][]piece
	endings map[uint32][]piece
	// longest is the length of the longest form, up to longestForm.
	longest int
}

// maxEscapes bounds how many levels of escapes are looked through: JSON within JSON within a URL.
const maxEscapes = 3

// maxPlaces bounds how many places of a piece in forms are tried.
const maxPlaces = 8

// KnownOf returns the values. It leaves out those that are not Hidable, and what is over 50,000 values and lines.
func KnownOf(values ...string) Known {
	k := &knownValues{pieces: map[string][]piece{}, endings: map[uint32][]piece{}}
	seen := map[string]bool{}
	for _, v := range values {
		for _, f := range formsOf(v) {
			if !seen[f.text] && len(k.pieces) < maxForms {
				seen[f.text] = true
				k.add(f)
			}
		}
	}
	if len(k.pieces) == 0 {
		return Known{}
	}
	k.finder = finderOf(slices.Sorted(maps.Keys(k.pieces)))
	return Known{k}
}

// add adds a form.
func (k *knownValues) add(f form) {
	n := len(k.forms)
	k.forms = append(k.forms, f)
	k.longest = min(max(k.longest, len(f.text)), longestForm)
	f.pieces(func(from, to int) {
		end := to
		if f.ends == nil {
			end = len(f.text)
		}
		if end-to < pieceBytes {
			last := gram(f.text[end-gramBytes:])
			k.endings[last] = append(k.endings[last], piece{n, end})
		}
		if text := f.text[from:to]; len(k.pieces[text]) < maxPlaces {
			k.pieces[text] = append(k.pieces[text], piece{n, from})
		}
	})
}

// hit is a part of a text, and the part of a form that it is.
type hit struct {
	part

	form, at, end int
}

// hits returns where the values are in a text, in order. With edges they include parts of values at the beginning and at the end
// of the text.
func (k *knownValues) hits(s string, edges bool) []hit {
	var all []hit
	done := 0
	if edges {
		if h, found := k.beginning(s); found {
			all, done = append(all, h), h.to
		}
	}
	for from, v := k.finder.next(s, done); v != ""; from, v = k.finder.next(s, done) {
		var longest hit
		for _, p := range k.pieces[v] {
			if h := k.extended(s, done, hit{part{from, from + len(v)}, p.form, p.at, p.at + len(v)}); h.to-h.from > longest.to-longest.from {
				longest = h
			}
		}
		if f := k.forms[longest.form]; edges && f.closed && longest.at == 0 && longest.end == len(f.text) {
			if rest := s[longest.to:]; rest == "\n" || strings.HasPrefix(rest, "\n\"") {
				longest.to++ // the string has nothing else
			}
		}
		all, done = append(all, longest), longest.to
	}
	if edges {
		if h, found := k.ending(s, done, shortestCut); found {
			all = append(all, h)
		}
	}
	return all
}

// extended returns a hit with what else of its form is around it, from done on.
func (k *knownValues) extended(s string, done int, h hit) hit {
	f := k.forms[h.form]
	for h.end < len(f.text) {
		to := afterBreaks(s, h.to)
		n := common(s[to:], f.text[h.end:])
		broken := to > h.to
		if n == 0 || (broken || f.ends != nil) && !f.whole(h.end+n) && to+n < len(s) && n < shortestCut {
			break
		}
		h.to, h.end = to+n, h.end+n
	}
	for h.at > 0 {
		from := beforeBreaks(s, h.from, done)
		n := commonEnd(s[done:from], f.text[:h.at])
		broken := from < h.from
		if n == 0 || (broken || f.ends != nil) && !f.whole(h.at-n) && from-n > done && n < shortestCut {
			break
		}
		h.from, h.at = from-n, h.at-n
	}
	if f.ends == nil && h.end == len(f.text) {
		// The last character has bits of what follows the value, such as a line end.
		to := run(s, h.to, base64Byte)
		if to-h.to <= 4 {
			h.to = to
		}
	}
	return h
}

// whole reports whether a line or the form begins or ends at a position.
func (f form) whole(at int) bool {
	if at == 0 || at == len(f.text) {
		return true
	}
	_, found := slices.BinarySearch(f.ends, at)
	return found
}

// afterBreaks returns the position after the line ends at i and what begins the next line: blanks and the margin of a diff or of
// a quotation. It returns i if no line ends there.
func afterBreaks(s string, i int) int {
	end := run(s, i, blank|lineEnd)
	if !strings.ContainsAny(s[i:end], "\r\n") {
		return i
	}
	for end < len(s) && strings.IndexByte("+>|", s[end]) >= 0 && is(s[end-1], lineEnd|blank) {
		end = run(s, end+1, blank)
	}
	return end
}

// beforeBreaks is afterBreaks to the other side, down to low.
func beforeBreaks(s string, i, low int) int {
	from := i
	for from > low && (is(s[from-1], blank|lineEnd) || strings.IndexByte("+>|", s[from-1]) >= 0 && from-1 > low && is(s[from-2], lineEnd)) {
		from--
	}
	if !strings.ContainsAny(s[from:i], "\r\n") {
		return i
	}
	return from
}

// common returns how many bytes two texts have in common at their beginning.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commonEnd is common for their ends.
func commonEnd(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// beginning returns the end of a value with which a text begins: the longest.
func (k *knownValues) beginning(s string) (best hit, found bool) {
	for i := shortestCut; i <= min(len(s), k.longest); i++ {
		for _, p := range k.endings[gram(s[i-gramBytes:])] {
			f := k.forms[p.form]
			if strings.HasSuffix(f.text[:p.at], s[:i]) && f.enough(s[:i]) {
				best, found = hit{part{0, i}, p.form, p.at - i, p.at}, true
			}
		}
	}
	return best, found
}

// ending returns the beginning of a value with which a text ends after done: the longest, of least bytes or more.
func (k *knownValues) ending(s string, done, least int) (hit, bool) {
	for from := max(done, len(s)-k.longest); from+max(least, gramBytes) <= len(s); from++ {
		if !k.finder.grams.has(gram(s[from:])) {
			continue
		}
		for _, i := range k.finder.of[gram(s[from:])] {
			for _, p := range k.pieces[k.finder.values[i]] {
				f := k.forms[p.form]
				if strings.HasPrefix(f.text[p.at:], s[from:]) && (least < shortestCut || f.enough(s[from:])) {
					return hit{part{from, len(s)}, p.form, p.at, p.at + len(s) - from}, true
				}
			}
		}
	}
	return hit{}, false
}

// enough reports whether a part of a text can be nothing but a part of the form: the form is no ordinary text, or the part is
// half of it.
func (f form) enough(v string) bool {
	return f.ends == nil || 2*len(v) >= len(f.text) || !strings.Contains(f.text, "://") && distinct(f.text)
}

// found returns the parts of s to remove, in order, and the values that they are of.
func (k *knownValues) found(s string, edges bool) (parts []part, of []hit) {
	views := []view{{text: s}}
	for range maxEscapes {
		v, escaped := unescape(views[len(views)-1].text)
		if !escaped {
			break
		}
		views = append(views, v)
	}
	for n, v := range views {
		for _, h := range k.hits(v.text, edges) {
			of = append(of, h)
			p := h.part
			for i := n; i > 0; i-- {
				p = part{views[i].source(p.from), views[i].source(p.to)}
			}
			parts = append(parts, p)
		}
	}
	return merged(parts), of
}

// merged returns the parts in order, without what two have in common.
func merged(parts []part) []part {
	slices.SortFunc(parts, func(a, b part) int { return a.from - b.from })
	var all []part
	for _, p := range parts {
		if n := len(all); n > 0 && p.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, p.to)
		} else if p.from < p.to {
			all = append(all, p)
		}
	}
	return all
}

// without returns s with the marker in place of each part.
func without(s string, parts []part) string {
	if len(parts) == 0 {
		return s
	}
	var out strings.Builder
	done := 0
	for _, p := range parts {
		out.WriteString(s[done:p.from])
		out.WriteString(Marker)
		done = p.to
	}
	out.WriteString(s[done:])
	return out.String()
}

// Remove returns s with the marker in place of each of the values.
func (k Known) Remove(s string) string {
	if k.k == nil {
		return s
	}
	parts, _ := k.k.found(s, true)
	return without(s, parts)
}

// In returns what a text has of the values: whole ones, and lines of those that it does not have whole.
func (k Known) In(s string) []string {
	if k.k == nil {
		return nil
	}
	_, hits := k.k.found(s, false)
	var all []string
	for _, h := range hits {
		f := k.k.forms[h.form]
		v := f.of
		if f.ends != nil && h.end-h.at < len(f.text) {
			v = f.text[h.at:h.end]
		}
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(v string) bool {
		return slices.ContainsFunc(all, func(whole string) bool { return len(whole) > len(v) && strings.Contains(whole, v) })
	})
}

// Occurs reports whether a JSON text contains a secret, in any of the forms that Known removes.
func Occurs(secret string, text []byte) bool {
	return len(KnownOf(secret).In(string(text))) > 0
}

// upTo returns what of s needs no more text to be decided, without the values, and the length of that part. What is left may be
// the beginning of a value. Lines are decided as a whole, except for very long ones.
func (k *knownValues) upTo(s string) (string, int) {
	decided := strings.LastIndexByte(s, '\n') + 1
	if len(s)-decided > longestForm {
		decided = len(s) - longestForm/2
	}
	if decided == 0 {
		return "", 0
	}
	parts, _ := k.found(s, false)
	for _, p := range parts {
		// A value goes on, or may go on with the next line.
		if p.from < decided && (p.to > decided || afterBreaks(s, p.to) >= decided) && len(s)-p.from < longestForm {
			decided = p.from
		}
	}
	if h, found := k.ending(s[:decided], 0, gramBytes); found && len(s)-h.from < longestForm {
		decided = h.from
	}
	for len(parts) > 0 && parts[len(parts)-1].to > decided {
		parts = parts[:len(parts)-1]
	}
	return without(s[:decided], parts), decided
}
