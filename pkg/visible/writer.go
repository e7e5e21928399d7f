// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package visible

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// Writer writes text to a screen and shows hidden characters as their escapes, and bytes that are not UTF-8 as \x9b. The
// program's own colours pass: Paint marks them in a way that nobody else's text knows.
type Writer struct {
	out  io.Writer
	mark []byte
	data bool
	last rune   // the last character that was written
	held []byte // its meaning depends on what follows
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Beside returns a Writer to out that passes the same colours as w.
func (w *Writer) Beside(out io.Writer) *Writer {
	w.Paint("", "")
	return &Writer{out: out, mark: w.mark}
}

// Data makes the writer escape control characters alone. It is for formats whose values must stay what they are and that have
// no escape outside of quotes, as YAML.
func (w *Writer) Data() { w.data = true }

// Paint returns text in an ANSI style ("31"), for writing to w.
func (w *Writer) Paint(style, text string) string {
	if w.mark == nil {
		w.mark = []byte("\x1b" + rand.Text())
	}
	return string(w.mark) + style + "m" + text + string(w.mark) + "0m"
}

// Write writes p. It keeps back the beginning of a character, and what it must know the next character for.
func (w *Writer) Write(p []byte) (int, error) {
	in := p
	if len(w.held) > 0 {
		in = slices.Concat(w.held, p)
		w.held = nil
	}
	if ordinary(in) {
		if len(in) > 0 {
			w.last = rune(in[len(in)-1])
		}
		return w.write(in, len(p))
	}
	out := make([]byte, 0, len(in)+64)
	for len(in) > 0 {
		n := w.next(&out, in, false)
		if n == 0 {
			w.held = bytes.Clone(in)
			break
		}
		in = in[n:]
	}
	return w.write(out, len(p))
}

// Flush writes what was kept back.
func (w *Writer) Flush() error {
	in, out := w.held, []byte(nil)
	w.held = nil
	for len(in) > 0 {
		in = in[w.next(&out, in, true):]
	}
	_, err := w.write(out, 0)
	return err
}

// write returns n if everything was written.
func (w *Writer) write(b []byte, n int) (int, error) {
	if len(b) == 0 {
		return n, nil
	}
	if _, err := w.out.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}

// next appends the first character of in as it is to be written, and returns how many bytes that was. It is 0 if more must be
// known, which it never is at the end.
func (w *Writer) next(out *[]byte, in []byte, end bool) int {
	if !end && !utf8.FullRune(in) {
		return 0
	}
	if n, known := w.style(out, in, end); n > 0 || !known {
		return n
	}
	r, n := utf8.DecodeRune(in)
	after, _ := utf8.DecodeRune(in[n:])
	partial := !end && !utf8.FullRune(in[n:])
	switch {
	case r == utf8.RuneError && n == 1:
		*out = fmt.Appendf(*out, `\x%02x`, in[0])
	case r == '\r' && partial, (r == joiner || r == nonJoiner) && joins(w.last) && partial:
		return 0
	case r == '\r' && after == '\n', (r == joiner || r == nonJoiner) && joins(w.last) && joins(after),
		!Hidden(r), w.data && !Control(r):
		*out = append(*out, in[:n]...)
	default:
		*out = escape(*out, r)
	}
	w.last = r
	return n
}

// style appends the style that in begins with, and returns its length. known is false if more of in is needed to tell.
func (w *Writer) style(out *[]byte, in []byte, end bool) (n int, known bool) {
	if w.mark == nil || in[0] != w.mark[0] {
		return 0, true
	}
	if !bytes.HasPrefix(in, w.mark) {
		return 0, end || !bytes.HasPrefix(w.mark, in)
	}
	rest := in[len(w.mark):]
	style, _, ok := bytes.Cut(rest, []byte("m"))
	if !ok {
		return 0, end
	}
	*out = append(append(append(*out, "\x1b["...), style...), 'm')
	return len(w.mark) + len(style) + 1, true
}

// ordinary reports whether every byte is printable ASCII, a tab or a line end.
func ordinary(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
