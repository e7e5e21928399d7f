// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/anthropic"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/server/pace"
)

const (
	// copyBuffer is how much of an answer is read at a time, in bytes.
	copyBuffer = 32 << 10
	// maxAnswer is how much of an answer that is not a stream is held, in bytes. Of a longer one the usage is unknown.
	maxAnswer = 16 << 20
)

// whole passes on an answer that is not a stream. It is held until it is complete, so that another candidate can be
// asked if it breaks off.
func (a *attempt) whole(resp *http.Response) error {
	defer resp.Body.Close() //nolint:errcheck // it was read, or is of no use
	data, err := readAll(io.LimitReader(resp.Body, maxAnswer), resp.ContentLength)
	if err != nil {
		a.failed = true
		a.end()
		return problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q: the answer broke off", a.candidate.Provider.Name), next: true}
	}
	rest := len(data) == maxAnswer
	if !rest {
		a.tally.body(data)
	}
	defer a.release()
	defer a.end()
	h := a.w.Header()
	copyHeader(h, resp.Header)
	if stream := a.streamed(data); !rest && stream != nil {
		data = stream
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if !rest {
		h.Set("Content-Length", strconv.Itoa(len(data)))
	}
	a.w.WriteHeader(resp.StatusCode)
	out := a.paced()
	if _, err := out.Write(data); err != nil || !rest {
		return nil // the client has left
	}
	_, _ = io.Copy(out, resp.Body) // the client sees that the answer broke off, because it is not valid JSON
	return nil
}

// streamed returns the stream that an answer would have been, because its client expects one and the vendor does not stream; nil
// if there is no such stream.
func (a *attempt) streamed(data []byte) (out []byte) {
	if !a.in.stream {
		return nil
	}
	switch a.in.op {
	case opChat:
		chunks, err := openai.Chunks(data, a.in.usage)
		if err != nil {
			return nil
		}
		for _, c := range chunks {
			out = append(out, sse("", c)...)
		}
		return append(out, "data: [DONE]\n\n"...)
	case opMessages:
		events, err := anthropic.Events(data)
		if err != nil {
			return nil
		}
		for _, e := range events {
			out = append(out, sse(e.Name, e.Data)...)
		}
	case opResponses, opCount, opModels:
	}
	return out
}

// readAll is io.ReadAll for a body whose length may be known; -1 if it is not. No more is believed than what is soon read anyway.
func readAll(from io.Reader, length int64) ([]byte, error) {
	into := bytes.NewBuffer(make([]byte, 0, bytes.MinRead+max(0, min(length, copyBuffer))))
	_, err := into.ReadFrom(from)
	return into.Bytes(), err
}

// paced returns the writer to the client.
func (a *attempt) paced() *pace.Writer { return pace.NewWriter(a.w, a.h.o.WriteTimeout) }

// stream passes on a stream event by event. When the client leaves, the rest is read without it.
func (a *attempt) stream(resp *http.Response) error {
	s := &events{}
	out := a.paced()
	report := &reporter{tally: &a.tally, hide: a.sent.usage}
	begun := false
	finish := func() {
		_ = resp.Body.Close() // it was read, or is of no use
		a.end()
		a.release()
	}
	buf := make([]byte, copyBuffer)
	for {
		n, err := resp.Body.Read(buf)
		a.idle.Reset(wire.IdleTimeout)
		send := s.next(buf[:n], errors.Is(err, io.EOF), report.event)
		a.failed = err != nil && a.cut(err, s)
		if err != nil && !errors.Is(err, io.EOF) && !begun && len(send) == 0 {
			_ = resp.Body.Close() // of no use
			a.end()
			return problem{code: http.StatusBadGateway, message: a.broken(), next: true}
		}
		if !begun && (len(send) > 0 || err != nil) {
			begun = true
			copyHeader(a.w.Header(), resp.Header)
			a.w.WriteHeader(http.StatusOK)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			send = append(send, a.failure()...)
		}
		var gone error
		if len(send) > 0 {
			if _, gone = out.Write(send); gone == nil {
				gone = out.FlushError()
			}
		}
		switch {
		case err != nil:
			finish()
			return nil //nolint:nilerr // the client has been told
		case gone != nil || a.r.Context().Err() != nil:
			go func() { // ends with the answer, or when Drain is over
				defer finish()
				a.drain(resp.Body, s, report)
			}()
			return nil //nolint:nilerr // nobody is left who could be told
		}
	}
}

// cut reports whether an answer that was read up to an error has no end that its vendor meant. A body may also end without an
// error where the vendor broke off; its client gets the same bytes. An event that is too long to be read may have been the end.
func (a *attempt) cut(err error, s *events) bool {
	return !errors.Is(err, io.EOF) || a.tally.failed || !a.tally.count.Over() && !s.skipped
}

// drain reads the rest of an answer, so that its usage is known.
func (a *attempt) drain(body io.Reader, s *events, report *reporter) {
	// The client's context may not have ended yet, if a write failed.
	t := a.h.o.Clock.AfterFunc(a.h.o.Drain, func() { a.cancel(errDrained) })
	defer t.Stop()
	buf := make([]byte, copyBuffer)
	for {
		n, err := body.Read(buf)
		a.idle.Reset(wire.IdleTimeout)
		s.next(buf[:n], err != nil, report.event)
		if err != nil {
			a.failed = a.cut(err, s)
			return
		}
	}
}

func (a *attempt) broken() string {
	return fmt.Sprintf("Provider %q: the answer broke off", a.candidate.Provider.Name)
}

// failure returns the event for an answer that broke off. A stream does not end as a complete one does.
func (a *attempt) failure() []byte {
	return failure(a.in.op, problem{code: http.StatusBadGateway, message: a.broken()})
}

func failure(op operation, p problem) []byte {
	name, style := "", protocolOf(op)
	if style == llm.ProtocolAnthropic || op == opResponses {
		name = "error"
	}
	return sse(name, json.RawMessage(p.envelope(style)))
}
