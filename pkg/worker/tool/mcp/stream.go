// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	// maxResumes is how often in a row a stream is resumed without a new event.
	maxResumes = 5
	// resumeAfter is the time until a stream is resumed, if the server does not name another one.
	resumeAfter = time.Second
)

// protocolError says how an answer breaks the protocol.
type protocolError string

func (e protocolError) Error() string { return string(e) }

// answer reads until the answer to the request is there: in a body of JSON, or in a stream of events.
func (x *exchange) answer(res *http.Response) ([]byte, error) {
	kind := res.Header.Get("Content-Type")
	if isStream(res) {
		return x.stream(res)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	answer, err := x.take(toolkit.UTF8(raw, kind))
	if err == nil && answer == nil {
		media, _, _ := mime.ParseMediaType(kind)
		err = protocolError(fmt.Sprintf("it answered with status %d and, as %.100q, with no message of the protocol", res.StatusCode, media))
	}
	return answer, err
}

func isStream(res *http.Response) bool {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return media == sse.ContentType
}

// stream is the part of an answer that came in events.
type stream struct {
	*exchange
	// last is the id of the last event, with which the stream can be resumed; empty if it cannot.
	last  string
	after time.Duration
}

// stream reads a stream of events. If it ends before the answer and its events have ids, it is resumed, as the protocol
// allows: the server may also end a stream to be asked again later.
func (x *exchange) stream(res *http.Response) ([]byte, error) {
	s := &stream{exchange: x, after: resumeAfter}
	for tries := 0; ; tries++ {
		before := s.last
		answer, err := s.read(res.Body)
		_ = res.Body.Close()
		if answer != nil || x.request.Context().Err() != nil || x.wire.life.Err() != nil {
			return answer, err
		}
		if errors.Is(err, io.EOF) {
			err = protocolError("the stream ended without response")
		}
		if s.last == "" {
			return nil, err
		}
		if s.last != before {
			tries = 0
		}
		if res, tries, err = s.resume(tries, err); err != nil {
			return nil, err
		}
	}
}

// endOfBody is a comment that follows the bytes of a body that ended in order.
const endOfBody = " end of the body"

// read reads events until the answer or the end. An event at the end may lack the empty line after it. It counts if it is
// complete, but is not one after which the stream can be resumed.
func (s *stream) read(body io.Reader) ([]byte, error) {
	var r *sse.Reader
	ended := false
	keep := func() {
		if id := r.LastID(); !ended && id != "" && httpguts.ValidHeaderFieldValue(id) {
			s.last = id
		}
	}
	r = sse.NewReader(io.MultiReader(body, strings.NewReader("\n:"+endOfBody+"\n\n")), sse.Options{
		MaxLine: maxDiscovery, MaxData: maxDiscovery, Comment: func(text string) {
			if " "+text == endOfBody {
				keep()
				ended = true
			}
		},
	})
	for {
		event, err := r.Next()
		keep()
		if after := r.Retry(); after > 0 {
			s.after = after
		}
		if err != nil {
			return nil, err
		}
		if event.Type != "message" {
			continue
		}
		if answer, err := s.take([]byte(event.Data)); answer != nil || err != nil {
			return answer, err
		}
	}
}

// resume waits and asks for the events after the last one, up to maxResumes times. why says how the stream ended.
func (s *stream) resume(tries int, why error) (*http.Response, int, error) {
	for ; tries < maxResumes; tries++ {
		if err := s.wait(s.request.Context(), s.after); err != nil {
			return nil, tries, err
		}
		req, err := again(s.request.Context(), s.exchange, http.MethodGet, nil)
		if err != nil {
			return nil, tries, err
		}
		req.Header.Set("Accept", sse.ContentType)
		req.Header.Set(sse.LastEventID, s.last)
		res, err := s.wire.send(req, false)
		if err != nil {
			if s.request.Context().Err() != nil || s.wire.life.Err() != nil {
				return nil, tries, err
			}
			why = err
			continue
		}
		if res.StatusCode == http.StatusOK && isStream(res) {
			return res, tries, nil
		}
		_ = res.Body.Close()
		why = protocolError(fmt.Sprintf("%v, and is not resumed: status %d", why, res.StatusCode))
		if res.StatusCode < http.StatusInternalServerError && res.StatusCode != http.StatusTooManyRequests {
			break
		}
	}
	return nil, tries, why
}

func (s *stream) wait(ctx context.Context, d time.Duration) error {
	t := s.wire.server.options.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
