// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package clip

import "strings"

// Writer keeps the first Limit bytes that are written to it. It takes all bytes and never fails.
type Writer struct {
	Limit int
	// Truncated is set once more was written.
	Truncated bool

	kept []byte
}

// Write keeps what there is room for.
func (w *Writer) Write(p []byte) (int, error) {
	room := w.Limit - len(w.kept)
	if len(p) > room {
		w.Truncated = true
	}
	w.kept = append(w.kept, p[:min(len(p), room)]...)
	return len(p), nil
}

// Bytes returns what is kept.
func (w *Writer) Bytes() []byte { return w.kept }

// Text returns what is kept as valid UTF-8, without the part of a character at which it was cut.
func (w *Writer) Text() string {
	b := w.kept
	if w.Truncated {
		b = Whole(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
