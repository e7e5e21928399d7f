// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sse writes and reads server-sent events, the wire format text/event-stream of the HTML standard.
//
// Frames are appended to a buffer, so that many frames need only one write and one flush. The reader
// follows the standard's rules for clients, with bounds on sizes.
package sse

import (
	"bytes"
	"strings"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// LastEventID is the request header in which a client that reconnects sends the id of the last event that
// it received.
const LastEventID = "Last-Event-ID"

// Append appends a frame to b. A line break in data starts another data line, so that the reader gets the
// same text with "\n" between lines. An empty id or event is left out. Characters of id and event that a
// line cannot hold are dropped.
func Append(b []byte, id, event string, data []byte) []byte {
	if id != "" {
		b = appendField(b, "id: ", id)
	}
	if event != "" {
		b = appendField(b, "event: ", event)
	}
	for more := true; more; {
		var line []byte
		line, data, more = cutLine(data)
		b = append(b, "data: "...)
		b = append(b, line...)
		b = append(b, '\n')
	}
	return append(b, '\n')
}

// AppendComment appends a comment, which keeps a connection alive and which the reader ignores. Line breaks
// in text become spaces.
func AppendComment(b []byte, text string) []byte {
	b = appendField(b, ": ", strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ").Replace(text))
	return append(b, '\n')
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	if strings.ContainsAny(value, "\r\n\x00") {
		value = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(value)
	}
	b = append(b, value...)
	return append(b, '\n')
}

// cutLine returns data up to its first line break, what follows it, and whether
// there was one: LF, CR or CRLF.
func cutLine(data []byte) (line, rest []byte, more bool) {
	i := indexBreak(data)
	if i < 0 {
		return data, nil, false
	}
	line, rest = data[:i], data[i+1:]
	if data[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest, true
}

func indexBreak(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}
