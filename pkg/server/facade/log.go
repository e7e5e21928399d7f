// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
)

const (
	// defaultTail and maxTail are numbers of lines of a log that is not followed.
	defaultTail, maxTail = 100, 100_000
	// maxTailBytes bounds what these lines may have together.
	maxTailBytes = 10 << 20
	// maxLine is how long a line of a followed log may be, in bytes; a longer one is sent in parts.
	maxLine = 256 << 10
	// heartbeat is how long a followed log is silent before a comment shows that the connection lives.
	heartbeat = 10 * time.Second
)

// logs answers with the end of a task's log, or with its result where it wrote none; or follows the log.
func logs(c *call) error {
	path, err := c.task("log")
	if err != nil {
		return err
	}
	follow := false
	if s := c.query.Get("follow"); s != "" {
		if follow, err = strconv.ParseBool(s); err != nil {
			return badRequest("follow: %q is not true or false", s)
		}
	}
	if follow {
		n := native{method: http.MethodGet, path: path, query: url.Values{"follow": {"true"}}}
		return c.pass(n, shape{
			header: map[string]string{"Content-Type": sse.ContentType, "X-Accel-Buffering": "no"},
			body:   func(w io.Writer) io.WriteCloser { return newLines(w, c.f.o.Clock) },
		})
	}
	lines := defaultTail
	if s := c.query.Get("tailLines"); s != "" {
		if lines, err = strconv.Atoi(s); err != nil || lines < 1 || lines > maxTail {
			return badRequest("tailLines: must be a number from 1 to %d", maxTail)
		}
	}
	end := &tail{lines: lines}
	if err := c.stream(native{method: http.MethodGet, path: path}, end); err != nil {
		return err
	}
	text := end.text()
	if text == "" {
		if text, err = c.result(); err != nil {
			return err
		}
	}
	reply(c.w, http.StatusOK, map[string]string{"logs": text})
	return nil
}

// result is the result of the task.
func (c *call) result() (string, error) {
	path, err := c.task("result")
	if err != nil {
		return "", err
	}
	var r v1alpha1.TaskResult
	err = c.fetch(native{method: http.MethodGet, path: path}, &r)
	if p, ok := asError(err); ok && p.code == http.StatusNotFound {
		return "", restError{code: http.StatusNotFound, message: fmt.Sprintf("task %q has no logs yet", c.params["id"])}
	}
	return r.Result, err
}

// tail keeps the last lines of what is written to it.
type tail struct {
	lines int
	buf   []byte
	ends  int // line ends in buf
}

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

func (t *tail) cut(n int) {
	t.ends -= bytes.Count(t.buf[:n], []byte{'\n'})
	t.buf = t.buf[n:]
}

func (t *tail) text() string {
	if t.ends == t.lines && len(t.buf) > 0 && t.buf[len(t.buf)-1] != '\n' {
		t.cut(bytes.IndexByte(t.buf, '\n') + 1)
	}
	return string(t.buf)
}

// lines turns text into events of a stream, one a line.
type lines struct {
	w     io.Writer
	clock clock.PassiveClock
	wrote time.Time
	line  []byte // the begin of a line whose end has not come
	out   []byte
}

func newLines(w io.Writer, c clock.PassiveClock) *lines {
	return &lines{w: w, clock: c, wrote: c.Now()}
}

// Write takes the next part of the text. An empty one, which the log is followed with while nothing happens, is the
// occasion for a heartbeat.
func (l *lines) Write(p []byte) (int, error) {
	l.out = l.out[:0]
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		l.line = append(l.line, part...)
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
	if _, err := l.w.Write(l.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *lines) event() {
	l.out = sse.Append(l.out, "", "", bytes.TrimSuffix(l.line, []byte{'\r'}))
	l.line = l.line[:0]
}

// Close sends a last line that has no end.
func (l *lines) Close() error {
	if len(l.line) == 0 {
		return nil
	}
	l.out = l.out[:0]
	l.event()
	_, err := l.w.Write(l.out)
	return err
}
