// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lines finds the lines of a file that a review may comment on: those that the diff of the pull request shows as they are after
// the change. A code host refuses a whole review for one comment on another line.
package lines

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Lines are the lines of a file that a review may comment on. The zero value has none.
type Lines struct {
	spans []span // in order, with other lines between them
}

// span is a sequence of lines, from the first to the last.
type span struct{ first, last int }

// Has reports whether a review may comment on a line, counted from 1.
func (l Lines) Has(line int) bool {
	_, found := slices.BinarySearchFunc(l.spans, line, func(s span, line int) int {
		switch {
		case s.last < line:
			return -1
		case s.first > line:
			return 1
		}
		return 0
	})
	return found
}

// Commentable returns the lines of the file after the change that a patch shows, the added ones and those around them. The patch is a
// unified diff of one file. What stands before its first hunk ("@@") is skipped.
//
// A patch is what somebody else sent, and may have been cut. Only lines that it contains count, whatever the header of the hunk says,
// and no more than the header says. A hunk is left out if its header is malformed or if it does not come after the hunk before it.
func Commentable(patch string) Lines {
	var l Lines
	var h hunk
	for text := range strings.Lines(patch) {
		if h.take(text) {
			continue
		}
		l.add(h.seen())
		h, _ = parseHeader(text)
	}
	l.add(h.seen())
	return l
}

// add adds a span that follows the others.
func (l *Lines) add(s span) {
	if s.last < s.first {
		return
	}
	if n := len(l.spans); n > 0 {
		before := &l.spans[n-1]
		switch {
		case s.first <= before.last:
			return
		case s.first == before.last+1:
			before.last = s.last
			return
		}
	}
	l.spans = append(l.spans, s)
}

// hunk is a part of a patch while its lines are read.
type hunk struct {
	first, next int // lines after the change
	// removed and added are how many lines before and after the change are still to come. Context counts as both.
	removed, added int
}

// seen returns the lines after the change that have been read. It is empty for the zero hunk.
func (h hunk) seen() span { return span{h.first, h.next - 1} }

// take reads a line of the hunk. It reports whether the line belongs to it.
func (h *hunk) take(text string) bool {
	removes, adds := 1, 1
	switch text[0] {
	case ' ', '\n', '\r': // some programs leave out the space of an empty line
	case '-':
		adds = 0
	case '+':
		removes = 0
	case '\\': // "\ No newline at end of file" says something about the line before it
		return h.next > 0
	default:
		return false
	}
	if h.removed < removes || h.added < adds {
		return false
	}
	h.removed, h.added, h.next = h.removed-removes, h.added-adds, h.next+adds
	return true
}

// parseHeader reads "@@ -FIRST,COUNT +FIRST,COUNT @@", after which anything may stand. A count of 1 may be left out.
func parseHeader(text string) (hunk, bool) {
	rest, ok := strings.CutPrefix(text, "@@ -")
	if !ok {
		return hunk{}, false
	}
	before, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return hunk{}, false
	}
	after, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return hunk{}, false
	}
	_, removed, okBefore := parseRange(before)
	first, added, okAfter := parseRange(after)
	if !okBefore || !okAfter {
		return hunk{}, false
	}
	return hunk{first: first, next: first, removed: removed, added: added}, true
}

// parseRange reads "FIRST,COUNT" or "FIRST". The sum of the two fits into 32 bits. FIRST is 0 only for an empty file.
func parseRange(text string) (first, count int, ok bool) {
	number, size, hasSize := strings.Cut(text, ",")
	f, ok := parseNumber(number)
	n, sizeOK := int64(1), true
	if hasSize {
		n, sizeOK = parseNumber(size)
	}
	if !ok || !sizeOK || f+n > math.MaxInt32 || f == 0 && n > 0 {
		return 0, 0, false
	}
	return int(f), int(n), true
}

// parseNumber reads digits and nothing else.
func parseNumber(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int64(n), err == nil
}
