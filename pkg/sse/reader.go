// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// MaxLine and MaxData are what a Reader takes unless told otherwise: bytes of one
// line, and of the data of one event. An event of the platform is below 256 KiB.
const (
	MaxLine = 1 << 20
	MaxData = 4 << 20
)

// ErrTooLong tells that a line or an event is longer than the reader takes.
var ErrTooLong = errors.New("sse: too long")

// Event is one event as a reader gets it.
type Event struct {
	// ID is the id of this event or, where it has none, of the last one that had.
	// It is what to send as Last-Event-ID to go on behind this event.
	ID string
	// Type is the event type, "message" where the frame names none.
	Type string
	// Data are the data lines, joined by "\n".
	Data string
}

// Options of a Reader. The zero value of every field is usable.
type Options struct {
	// MaxLine bounds a line, in bytes. Default: MaxLine.
	MaxLine int
	// MaxData bounds the data of an event, in bytes. Default: MaxData.
	MaxData int
	// Comment, where set, is called with each comment as it is met; heartbeats are
	// comments.
	Comment func(text string)
}

// Reader reads a stream. It is for one goroutine.
type Reader struct {
	opts    Options
	in      *bufio.Reader
	line    []byte // of the current line, when it is longer than the buffer
	started bool   // a byte order mark is behind us
	skipLF  bool   // the last line ended in CR: an LF belongs to it
	id      string
	retry   time.Duration
}

// NewReader reads events from r. It reads ahead.
func NewReader(r io.Reader, o Options) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = MaxLine
	}
	if o.MaxData <= 0 {
		o.MaxData = MaxData
	}
	return &Reader{opts: o, in: bufio.NewReaderSize(r, 16<<10)}
}

// LastID is the id of the last event that had one, also of one without data.
func (r *Reader) LastID() string { return r.id }

// Retry is how long the stream asks to wait before a reconnect; 0 if it does not.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event. An event that the stream's end cuts off is
// dropped: the end is io.EOF. Other errors are those of reading, and ErrTooLong.
func (r *Reader) Next() (*Event, error) {
	var data strings.Builder
	event, id, some := "", r.id, false
	for {
		line, err := r.next()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			r.id = id
			if !some {
				event = ""
				continue
			}
			if event == "" {
				event = "message"
			}
			return &Event{ID: id, Type: event, Data: data.String()}, nil
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "":
			if r.opts.Comment != nil {
				r.opts.Comment(string(value))
			}
		case "data":
			if some {
				data.WriteByte('\n')
			}
			some = true
			if data.Len()+len(value) > r.opts.MaxData {
				return nil, fmt.Errorf("%w: the data of an event has more than %d bytes", ErrTooLong, r.opts.MaxData)
			}
			data.Write(value)
		case "event":
			event = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				id = string(value)
			}
		case "retry":
			r.setRetry(value)
		}
	}
}

// setRetry takes digits only, as the standard says; longer ones than a duration
// holds are ignored too.
func (r *Reader) setRetry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	const longest = int64(24 * time.Hour / time.Millisecond)
	if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms <= longest {
		r.retry = time.Duration(ms) * time.Millisecond
	}
}

// next returns a line without its end. It is valid until the next call. A last
// line that has no end is io.EOF: nothing may follow from it.
func (r *Reader) next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		chunk, err := r.in.Peek(r.in.Buffered())
		if err != nil {
			return nil, err
		}
		if r.skipLF {
			r.skipLF = false
			if chunk[0] == '\n' {
				r.discard(1)
				continue
			}
		}
		i := indexBreak(chunk)
		n := i
		if i < 0 {
			n = len(chunk)
		}
		if len(r.line)+n > r.opts.MaxLine {
			return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrTooLong, r.opts.MaxLine)
		}
		if i < 0 {
			r.line = append(r.line, chunk...)
			r.discard(n)
			continue
		}
		r.skipLF = chunk[i] == '\r'
		line := chunk[:i]
		if len(r.line) > 0 {
			r.line = append(r.line, line...)
			line = r.line
		}
		r.discard(i + 1) // what was peeked stays valid until the next read
		if !r.started {
			r.started = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		return line, nil
	}
}

// discard drops bytes that are buffered, which cannot fail.
func (r *Reader) discard(n int) { _, _ = r.in.Discard(n) }
