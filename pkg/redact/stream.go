// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strings"
)

const (
	// streamHold is how much of the text that came last a Stream keeps back, in
	// bytes: more than a key block or the manifest of a Secret has.
	streamHold = 8 << 10
	// streamLimit bounds what a Stream keeps back in all.
	streamLimit = 256 << 10
)

// Stream redacts text that comes in pieces, such as a log. It keeps the end
// back until it knows that no secret reaches over the place where it cuts, so
// that what spans lines is recognised whenever its lines come. The zero value
// is ready; it is not safe for concurrent use.
type Stream struct {
	pending []byte
	// enough is the length of pending at which a cut is tried again.
	enough int
}

// Write takes the next piece and returns what is settled, without secrets.
func (s *Stream) Write(piece string) string {
	s.pending = append(s.pending, piece...)
	if len(s.pending) < max(2*streamHold, s.enough) {
		return ""
	}
	text := string(s.pending)
	whole, changed := Text(text)
	for cut := len(text) - streamHold; cut > 0; cut -= streamHold / 8 {
		if cut = strings.LastIndexByte(text[:cut], '\n') + 1; cut == 0 {
			break
		}
		head := text[:cut]
		if changed {
			tail, _ := Text(text[cut:])
			if head, _ = Text(head); head+tail != whole {
				continue // a secret reaches over the cut
			}
		}
		s.pending, s.enough = append(s.pending[:0], text[cut:]...), 0
		return head
	}
	if len(text) < streamLimit {
		s.enough = len(text) + streamHold
		return ""
	}
	s.pending, s.enough = s.pending[:0], 0
	return whole
}

// Flush returns what was kept back, without secrets. Unless it is the end, an
// unfinished block of key material is kept.
func (s *Stream) Flush(end bool) string {
	cut := len(s.pending)
	if at := bytes.LastIndex(s.pending, []byte(pemBegin)); !end && at >= 0 && cut-at < 2*streamHold {
		rest := string(s.pending[at+len(pemBegin):])
		if secretTitle(rest, "-----") >= 0 && !strings.Contains(rest, pemEnd) {
			cut = bytes.LastIndexByte(s.pending[:at], '\n') + 1
		}
	}
	clean, _ := Text(string(s.pending[:cut]))
	s.pending, s.enough = append(s.pending[:0], s.pending[cut:]...), 0
	return clean
}
