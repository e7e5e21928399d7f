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

// MaxLine and MaxData are the default bounds of a Reader, in bytes: of one line, and of the data of one
// event. Events of the platform are smaller than 256 KiB.
const (
	MaxLine = 1 << 20
	MaxData = 4 << 20
)

// ErrTooLong reports that a line or an event is longer than the reader accepts.
var ErrTooLong = errors.New("event stream: too long")

// Event is one event as a Reader returns it.
type Event struct {
	// ID is the id of this event or, if it has none, of the last event that had one. A client sends it as
	// Last-Event-ID to resume after this event.
	ID string
	// Type is the event type, or "message" if the frame names none.
	Type string
	// Data are the data lines, joined by "\n".
	Data string
}

// Options configure a Reader. The zero value of every field is usable.
type Options struct {
	// MaxLine bounds a line, in bytes. Default: MaxLine.
	MaxLine int
	// MaxData bounds the data of an event, in bytes. Default: MaxData.
	MaxData int
	// Comment, if set, is called with each comment when it is read. Heartbeats are comments.
	Comment func(text string)
}

// Reader reads a stream. It is not safe for concurrent use.
type Reader struct {
	opts    Options
	in      *bufio.Reader
	line    []byte // of the current line, when it is longer than the buffer
	started bool   // a byte order mark, if any, was skipped
	skipLF  bool   // the last line ended in CR: an LF belongs to it
	id      string
	retry   time.Duration
}

// NewReader returns a Reader of the events in r. It may read more of r than it returns.
func NewReader(r io.Reader, o Options) *Reader {
	if o.MaxLine <= 0 {
		o.MaxLine = MaxLine
	}
	if o.MaxData <= 0 {
		o.MaxData = MaxData
	}
	return &Reader{opts: o, in: bufio.NewReaderSize(r, 16<<10)}
}

// LastID returns the id of the last event that had one, including events without data.
func (r *Reader) LastID() string { return r.id }

// Retry returns how long the stream asks clients to wait before they reconnect; 0 if it does not.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event. An event cut off by the end of the stream is dropped, and the end is io.EOF.
// Other errors are read errors and ErrTooLong.
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

// setRetry accepts only digits, as the standard requires. It also ignores values that overflow a duration.
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

// next returns a line without its line end. The line is valid until the next call. A last line without a
// line end is dropped, and next returns io.EOF.
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
		r.discard(i + 1) // peeked bytes stay valid until the next read
		if !r.started {
			r.started = true
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		return line, nil
	}
}

// discard drops buffered bytes, which cannot fail.
func (r *Reader) discard(n int) { _, _ = r.in.Discard(n) }
