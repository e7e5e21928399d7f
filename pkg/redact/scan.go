// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// scanner is one pass over s. Bytes before done are already in out.
//
//large:fields the places before which no secret of a form can begin are kept for each form, so that a text is read once
//large:lines each form of a secret is recognised by a method at the same position of one text
type scanner struct {
	s    string
	out  strings.Builder
	done int
	// marks counts the markers that were inserted.
	marks int
	// found are the removed values that must not occur elsewhere, either.
	found []string
	// changes are the positions in out of what was inserted.
	changes []int
	// joined is set if something was removed without a marker, which can make a word of two parts.
	joined bool
	// formats is set for decoded text, in which only secrets recognised by their form are looked for.
	formats bool
	// queries is set to keep the queries and fragments of URLs.
	queries bool

	// urlStop is the end of the URL that the scan is in, and cut is the position of its query or fragment.
	// Outside a URL, both are at or before the position of the scan.
	urlStop int
	cut     int
	// plainStop is the end of a path in which no query was found.
	plainStop int
	// nextEnd, nextSSHEnd and nextStray are the positions of what pem has looked for ahead.
	nextEnd, nextSSHEnd, nextStray int
	// encodedStop is the end of the last base64 word that was decoded.
	encodedStop int
	// percentStop is the end of the last word with escapes of URLs.
	percentStop int
	// command is the program whose arguments the scan is in, and commandAt is the position of its name.
	command   program
	commandAt int
	// setting is the position after the last word that sets a variable.
	setting int
	// named is the position after a member stating that the value beside it is a secret: name: API_KEY.
	named     int
	namedKind secretKind
	// namedAtEnd is set if the name is that of the secret itself: API_KEY, not KEY_MODE.
	namedAtEnd bool
	// manifest is the position of the last "kind: Secret", and nextManifest is that of the next one.
	manifest, nextManifest int
}

// shortest is the length of the shortest word that words examines, in bytes.
const shortest = 9

// scan makes one pass and reports whether it removed anything. It adds to found.
func scan(s string, queries bool, found []string) (string, bool, []string) {
	r := scanParts(s, queries, found, whole(s))
	return r.text, r.changed, r.found
}

// pass calls the matchers at each position of a part of the text, which begins a line. They see all of the text.
func (x *scanner) pass(p part) {
	s := x.s
	gap := max(p.from, x.done) // start of the run of bytes in which no matcher was called
	for i := gap; i < p.to; {
		if !triggers[s[i]] {
			i++
			continue
		}
		word := is(s[i], alnum)
		if word && !x.starts(i) {
			i++ // in a word, which is passed to words as a whole
			continue
		}
		end := 0
		if i-gap >= shortest {
			end = x.words(gap, i)
		}
		switch {
		case end > i:
		case word:
			end = x.started(i)
		default:
			end = x.at(i)
		}
		i = max(i+1, end)
		gap = i
	}
	if p.to-gap >= shortest {
		x.words(gap, p.to)
	}
}

// at calls the matchers of the trigger byte at i. It returns the position at which the scan continues, or 0
// if nothing matched.
func (x *scanner) at(i int) int {
	if x.formats {
		return x.format(i)
	}
	s := x.s
	switch s[i] {
	case ' ', '\t':
		if x.setting > 0 || i+2 < len(s) && (s[i+1]|0x20 == 'i' || s[i+1]|0x20 == 'e') && s[i+2]|0x20 == 's' || i > 1 && wordEnds.has(s[i-2], s[i-1]) {
			return x.afterWord(i)
		}
		return 0
	case '=':
		return x.assignment(i)
	case ':':
		return x.colon(i)
	case '/':
		if i+1 < len(s) && s[i+1] == '/' || i > 0 && s[i-1] == 'm' {
			return x.slash(i)
		}
		return 0
	case '?', '#':
		return x.tail(i)
	case '>':
		return x.element(i)
	case '@':
		return x.dataSource(i)
	case fullwidthLead:
		return x.fullwidth(i)
	case '%':
		return x.percented(i)
	case '-':
		if i > 0 && is(s[i-1], keyByte) {
			break // in a word
		}
		if end := x.shortFlag(i); end != 0 {
			return end
		}
		if end := x.flag(i); end != 0 {
			return end
		}
	}
	return x.format(i)
}

// format calls the matchers of secrets that are recognised by their form.
func (x *scanner) format(i int) int {
	s := x.s
	switch s[i] {
	case '-':
		if end := x.pem(i); end != 0 {
			return end
		}
		return x.mark(i)
	case '_':
		return x.mark(i)
	case '.':
		return x.dot(i)
	case '~':
		return x.tilde(i)
	case ':':
		if end := x.tableau(i); end != 0 {
			return end
		}
		return x.telegram(i)
	case '|':
		return x.facebook(i)
	case '$':
		return x.crypt(i)
	case '/':
		return x.googleRefresh(i)
	}
	return 0
}

// mark calls the matchers of tokens that contain the mark at i.
func (x *scanner) mark(i int) int {
	if end := x.prefixed(i); end != 0 {
		return end
	}
	if end := x.short(i); end != 0 {
		return end
	}
	return x.suffixed(i)
}

func (x *scanner) colon(i int) int {
	s := x.s
	n := slashes(s, i+1)
	if n == 0 {
		if i+1 < len(s) && is(s[i+1], alnum) {
			if end := x.format(i); end != 0 {
				return end
			}
			if end := x.passFile(i); end != 0 {
				return end
			}
		}
		if end := x.assignment(i); end != 0 {
			return end
		}
		return x.announced(i)
	}
	if end := x.assignment(i); end != 0 {
		return end
	}
	return x.absolute(i, i+1+n)
}

// remove replaces s[from:to] by the marker, unless it is the marker already, and returns to. The part that
// an earlier removal covered is not changed again.
func (x *scanner) remove(from, to int) int { return x.replace(from, to, Marker) }

// replace replaces s[from:to] by with and returns to.
func (x *scanner) replace(from, to int, with string) int {
	if from < x.done {
		from = x.done
	}
	if from >= to {
		return to
	}
	if x.s[from:to] == with {
		return to
	}
	if with == Marker {
		x.marks++
		x.found = noted(x.found, x.s[from:to])
	}
	if x.out.Cap() == 0 {
		x.out.Grow(len(x.s))
		x.changes = make([]int, 0, 16+len(x.s)>>9)
	}
	x.out.WriteString(x.s[x.done:from])
	x.changes, x.joined = append(x.changes, x.out.Len()), x.joined || with == ""
	x.out.WriteString(with)
	x.done = to
	return to
}

// back returns the start of the run of bytes of class k that ends before i. The run is at most limit bytes
// long and never extends into a removed span.
func (x *scanner) back(i, limit int, k class) int {
	low := max(x.done, i-limit)
	for i > low && is(x.s[i-1], k) {
		i--
	}
	return i
}

// boundary reports whether a token may start at i, that is, whether the byte before is not part of a longer
// word. The letter of an escape (\n, %3D, \u003d, a terminal's colour code) does not belong to the word
// that follows it.
func (x *scanner) boundary(i int) bool {
	s := x.s
	if i == x.done || i == 0 || !is(s[i-1], alnum) {
		return true
	}
	switch {
	case i >= 2 && s[i-2] == '\\':
		return strings.IndexByte("nrtfv", s[i-1]) >= 0
	case i >= 3 && s[i-3] == '%' || i >= 4 && s[i-4] == '\\' && s[i-3] == 'x':
		return is(s[i-1], hex) && is(s[i-2], hex)
	case i >= 6 && s[i-6] == '\\' && s[i-5] == 'u':
		return all(s[i-4:i], hex)
	}
	return colourBefore(s, i) < i
}

// fold reports whether s starts with prefix, ignoring case. prefix must be in lower case.
func fold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
