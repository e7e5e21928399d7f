// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/timeline"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sse"
)

const (
	// maxTail is the maximum value of tailLines, in lines.
	maxTail = 100_000
	// maxTailBytes bounds the total length of these lines, in bytes.
	maxTailBytes = 10 << 20
	// maxLine is the maximum length of a line in one server-sent event, in bytes; a longer line is sent in parts.
	maxLine = 256 << 10
	// heartbeat is how long a stream of events may be silent before a comment is sent to show that the connection
	// works.
	heartbeat = 15 * time.Second
)

// logView is how a reader wants to see a log, from the parameters of the query.
type logView struct {
	// follow goes on until the task has ended (follow=true).
	follow bool
	// events sends each line as a server-sent event (format=events); otherwise the log is sent as text.
	events bool
	// tail is how many of the last lines are sent (tailLines); 0 is the whole log.
	tail int
	// after is where the log begins for a client that reconnects by itself, in bytes: the id of the last event that it has.
	after   int64
	resumed bool
	// gap is set if the log has not reached that position: it is of another one, and this one is sent from its beginning.
	gap *v1alpha1.EventGap
}

func logViewOf(req *http.Request) (v logView, err error) {
	if v.follow, err = wellformed.Bool(req, "follow"); err != nil {
		return v, err
	}
	q := wellformed.Query(req)
	switch f := q.Get("format"); f {
	case "", "text":
	case "events":
		v.events = true
	default:
		return v, apierrors.NewBadRequest(fmt.Sprintf("format: %q: must be text or events", f))
	}
	if s := q.Get("tailLines"); s != "" {
		if v.tail, err = strconv.Atoi(s); err != nil || v.tail < 1 || v.tail > maxTail {
			return v, apierrors.NewBadRequest(fmt.Sprintf("tailLines: must be a number from 1 to %d", maxTail))
		}
		if v.follow || v.events {
			return v, apierrors.NewBadRequest("tailLines: cannot be used together with follow or format=events")
		}
	}
	if v.events {
		v.after, v.resumed, err = timeline.Resumed(req)
	}
	return v, err
}

// writer sets the headers of the answer and returns a writer that renders this view of the log. Close ends the view.
func (v logView) writer(w http.ResponseWriter, c clock.PassiveClock) io.WriteCloser {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	switch {
	case v.events:
		h.Set("Content-Type", sse.ContentType)
		h.Set("X-Accel-Buffering", "no")
		return newLines(w, c, v)
	case v.tail > 0:
		return &tail{w: w, lines: v.tail}
	}
	return whole{w}
}

// whole writes the log unchanged.
type whole struct{ io.Writer }

// Close does nothing: everything has been written already.
func (whole) Close() error { return nil }

// tail keeps the last lines of the text that is written to it and sends them on Close.
type tail struct {
	w     io.Writer
	lines int
	buf   []byte
	ends  int // line ends in buf
}

// Write takes the next part of the text.
func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	t.ends += bytes.Count(p, []byte{'\n'})
	if over := len(t.buf) - maxTailBytes; over > 0 {
		t.cut(over)
	}
	for t.ends > t.lines { // one more than wanted may be the end of the last line
		t.cut(bytes.IndexByte(t.buf, '\n') + 1)
	}
	return len(p), nil
}

// Close sends the lines.
func (t *tail) Close() error {
	if t.ends == t.lines && len(t.buf) > 0 && t.buf[len(t.buf)-1] != '\n' {
		t.cut(bytes.IndexByte(t.buf, '\n') + 1)
	}
	_, err := t.w.Write(t.buf)
	return err
}

func (t *tail) cut(n int) {
	t.ends -= bytes.Count(t.buf[:n], []byte{'\n'})
	t.buf = t.buf[n:]
}

// lines turns text into server-sent events, one per line. The id of each is where the log goes on after it, in bytes.
type lines struct {
	w     io.Writer
	clock clock.PassiveClock
	wrote time.Time
	at    int64  // in the log
	line  []byte // the beginning of a line whose end has not arrived
	out   []byte
}

func newLines(w io.Writer, c clock.PassiveClock, v logView) *lines {
	l := &lines{w: w, clock: c, wrote: c.Now(), at: v.after}
	if v.gap != nil {
		data, err := json.Marshal(v.gap)
		if err != nil { // never: numbers and a text
			data = nil
		}
		l.out = sse.Append(nil, "0", event.FrameGap, data)
	}
	return l
}

// Write takes the next part of the text. A follower of a log writes an empty part while nothing happens, so that a
// heartbeat can be sent.
func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		l.line = append(l.line, part...)
		l.at += int64(len(part))
		if ended {
			l.at++
		}
		if ended || len(l.line) >= maxLine {
			l.event()
		}
	}
	now := l.clock.Now()
	if len(l.out) == 0 && now.Sub(l.wrote) >= heartbeat {
		l.out = sse.AppendComment(l.out, "heartbeat")
	}
	if len(l.out) == 0 {
		return len(p), nil
	}
	l.wrote = now
	_, err := l.w.Write(l.out)
	if l.out = l.out[:0]; err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *lines) event() {
	l.out = sse.Append(l.out, strconv.FormatInt(l.at, 10), "", bytes.TrimSuffix(l.line, []byte{'\r'}))
	l.line = l.line[:0]
}

// Close sends a last line that lacks a line end.
func (l *lines) Close() error {
	if len(l.line) == 0 {
		return nil
	}
	l.event()
	_, err := l.w.Write(l.out)
	return err
}
