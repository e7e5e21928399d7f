// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// stopSequence is why an answer ended that reached one of the client's sequences.
const stopSequence llm.StopReason = "stop_sequence"

// Limits of a client's sequences.
const (
	maxStops     = 16
	maxStopBytes = 1 << 10
)

func checkStops(name string, list []string) error {
	if len(list) > maxStops || slices.ContainsFunc(list, func(s string) bool { return s == "" || len(s) > maxStopBytes }) {
		return invalid(name, "%s: at most %d texts of 1 to %d bytes are allowed", name, maxStops, maxStopBytes)
	}
	return nil
}

// stopper ends a text that arrives in pieces before the first of the sequences. The vendor is not asked to do so with the
// server's tools, because a sequence could also end the mark of the goal, or the arguments of a call; nor a vendor of chat
// completions for a client of messages, which is told what ended its answer. The tokens of what the vendor writes after the sequence
// count.
type stopper struct {
	sequences []string
	held      string // may be the begin of a sequence
	hit       string // the sequence that was found
}

// add takes a piece and returns what can be shown.
func (s *stopper) add(piece string) string {
	switch {
	case s.hit != "":
		return ""
	case len(s.sequences) == 0:
		return piece
	}
	s.held += piece
	at, end := -1, len(s.held)+1
	for _, one := range s.sequences {
		// The one that is complete first counts, however the text is cut into pieces.
		if i := strings.Index(s.held, one); i >= 0 && (i+len(one) < end || i+len(one) == end && i < at) {
			at, end, s.hit = i, i+len(one), one
		}
	}
	if at < 0 {
		at = len(s.held) - s.begun()
	}
	out := s.held[:at]
	s.held = s.held[at:]
	return out
}

// cutAt returns a whole text up to the first of the sequences, and which of them was found; empty if none was.
func cutAt(text string, sequences []string) (kept, hit string) {
	s := stopper{sequences: sequences}
	return s.add(text) + s.rest(), s.hit
}

// begun returns how many of the last bytes may be the begin of a sequence.
func (s *stopper) begun() (longest int) {
	for _, one := range s.sequences {
		for n := min(len(one)-1, len(s.held)); n > longest; n-- {
			if strings.HasSuffix(s.held, one[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// rest returns what is left when the text is complete.
func (s *stopper) rest() string {
	out := s.held
	s.held = ""
	if s.hit != "" {
		return ""
	}
	return out
}
