// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"strings"
)

const (
	// streamHold is how much of the latest text a Stream holds back, in bytes. It is more than the length
	// of a key block or of the manifest of a Secret.
	streamHold = 8 << 10
	// streamPiece is how much text comes in before a Stream looks for a place to cut, in bytes. What is held back is
	// examined again with the next piece, so a small piece costs more.
	streamPiece = 56 << 10
	// streamLimit bounds how much a Stream holds back in total, in bytes.
	streamLimit = 256 << 10
)

// Stream redacts text that comes in pieces, such as a log. It holds back the end of the text until it knows
// that no secret spans the place where it cuts. Secrets that span lines are thus recognised no matter when
// the lines arrive. The zero value is ready to use. A Stream is not safe for concurrent use.
type Stream struct {
	// raw is text that may be the beginning of a value that is known.
	raw string
	// pending is text without such values.
	pending []byte
	// enough is the length of pending, in bytes, at which a cut is tried again.
	enough int
	// Seen, if set, holds what is removed from other texts, too.
	Seen *Seen
	// own is used without a Seen.
	own Seen
}

// Write takes the next piece and returns the text that is decided so far, without secrets.
func (s *Stream) Write(piece string) string {
	s.take(piece)
	if len(s.pending) < max(streamHold+streamPiece, s.enough) {
		return ""
	}
	text := string(s.pending)
	whole, changed := s.settle(text)
	for cut := len(text) - streamHold; cut > 0; cut -= streamHold / 8 {
		if cut = strings.LastIndexByte(text[:cut], '\n') + 1; cut == 0 {
			break
		}
		head := text[:cut]
		if changed {
			tail, _, _ := rescan(text[cut:], false, false)
			if head, _, _ = rescan(head, false, false); head+tail != whole {
				continue // a secret spans the cut
			}
		}
		s.pending, s.enough = append(s.pending[:0], text[cut:]...), 0
		return s.seen().again(head)
	}
	if len(text) < streamLimit {
		s.enough = len(text) + streamHold
		return ""
	}
	s.pending, s.enough = s.pending[:0], 0
	return s.seen().again(whole)
}

// take adds a piece without the values that are known.
func (s *Stream) take(piece string) {
	k := s.seen().Known.k
	if k == nil {
		s.pending = append(s.pending, piece...)
		return
	}
	s.raw += piece
	clean, n := k.upTo(s.raw)
	s.pending = append(s.pending, clean...)
	s.raw = s.raw[n:]
}

// release adds what take has held back: at the end all of it, otherwise up to the last line end.
func (s *Stream) release(end bool) {
	n := len(s.raw)
	if !end {
		n = strings.LastIndexByte(s.raw, '\n') + 1
	}
	s.pending = append(s.pending, s.seen().Known.Remove(s.raw[:n])...)
	s.raw = s.raw[n:]
}

func (s *Stream) seen() *Seen {
	if s.Seen != nil {
		return s.Seen
	}
	return &s.own
}

// settle is Text without the removal of values that occur again, which is done when the text is returned.
func (s *Stream) settle(text string) (string, bool) {
	out, changed, found := rescan(text, false, false)
	s.seen().add(found)
	return out, changed
}

// Flush returns the text that was held back, without secrets. Unless end is set, it still holds back an
// unfinished block of key material.
func (s *Stream) Flush(end bool) string {
	s.release(end)
	cut := len(s.pending)
	if at := bytes.LastIndex(s.pending, []byte(pemBegin)); !end && at >= 0 && cut-at < 2*streamHold {
		rest := string(s.pending[at+len(pemBegin):])
		if secretTitle(rest, "-----") >= 0 && !strings.Contains(rest, pemEnd) {
			cut = bytes.LastIndexByte(s.pending[:at], '\n') + 1
		}
	}
	clean, _ := s.seen().apply(settle(string(s.pending[:cut]), false))
	s.pending, s.enough = append(s.pending[:0], s.pending[cut:]...), 0
	return clean
}
