// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/llm/anthropic"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/server/writetimeout"
)

const (
	eventStream = "text/event-stream; charset=utf-8"
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
	var no error
	if !rest && readable(resp.Header) {
		no = a.tally.body(data)
	}
	if no != nil {
		a.failed = true
		a.end()
		return a.none(no)
	}
	if !rest {
		a.heard.whole(a.in.op, data)
	}
	defer a.release()
	defer a.end()
	h := a.w.Header()
	copyHeader(h, resp.Header)
	if stream := a.streamed(data); !rest && stream != nil {
		data = stream
		h.Set("Content-Type", eventStream)
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

// readable reports whether an answer can be judged: it is not compressed, which it was not asked to be.
func readable(h http.Header) bool {
	return slices.Contains([]string{"", "identity"}, strings.ToLower(h.Get("Content-Encoding")))
}

// none returns the problem for what is no answer although its status says so. Another candidate may have one.
func (a *attempt) none(err error) problem {
	p := problem{code: http.StatusBadGateway, message: fmt.Sprintf("Provider %q sent no answer", a.candidate.Provider.Name), next: true}
	if no, ok := errors.AsType[*wire.NoAnswerError](err); ok {
		said := clip.Text(string(a.candidate.Scrub([]byte(no.Said))), maxSaid)
		p.message = strings.TrimSuffix(fmt.Sprintf("Provider %q sent no answer but %s: %s", a.candidate.Provider.Name, no.What, said), ": ")
	}
	return p
}

// answerOf returns what the answers to an operation have.
func answerOf(op operation) wire.Answer {
	switch op {
	case opResponses:
		return openai.ResponseAnswer
	case opMessages:
		return anthropic.MessageAnswer
	case opCount:
		return anthropic.CountAnswer
	case opChat, opModels:
	}
	return openai.ChatAnswer
}

// opening holds the begin of a stream back until it is known to be an answer, so that another candidate can be asked otherwise.
//
// A success status does not make an answer: proxies send pages, and servers send errors, null or nothing with 200. wire.Answer
// judges what arrives, passed on or translated, whole or as a stream, by how it begins and what the answers of the API have. What
// is no answer is 502 in the form of the API; another candidate is asked first; and the usage of the request is unknown. Nothing of
// a stream is sent before its first event is known to be one of an answer, except comments beyond maxHeld.
type opening struct {
	answer wire.Answer
	held   []byte
	known  bool
	none   error
}

// maxHeld is how much may come before the first event of an answer, such as comments that keep a connection open, in bytes. After
// that the client gets them.
const maxHeld = 512

// see judges an event.
func (o *opening) see(event []byte) {
	if !o.known {
		o.known, o.none = o.answer.First(dataOf(event))
	}
}

// opened returns what can be sent, and whether that is all from now on.
func (o *opening) opened(arrived []byte, end bool) ([]byte, bool) {
	o.held = append(o.held, arrived...)
	switch {
	case o.none != nil:
	case o.known, len(o.held) > maxHeld:
		return o.held, true
	case end:
		o.none = &wire.NoAnswerError{What: "a stream without an event"}
	}
	return nil, false
}

// streamed returns the stream that an answer would have been, because its client expects one and the vendor does not stream, or
// refused to; nil if there is no such stream. The events have all members of the answer.
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
func (a *attempt) paced() *writetimeout.Writer {
	return writetimeout.NewWriter(a.w, a.h.o.WriteTimeout)
}

// stream passes on a stream event by event. When the client leaves, the rest is read without it.
func (a *attempt) stream(resp *http.Response) error {
	s := &events{}
	out := a.paced()
	report := &reporter{tally: &a.tally, hide: a.sent.usage, heard: a.heard.listen(a.in.op)}
	begin, begun := opening{answer: answerOf(a.in.op), known: !readable(resp.Header)}, false
	event := func(event []byte) []byte {
		begin.see(event)
		return report.event(event)
	}
	finish := func() {
		_ = resp.Body.Close() // it was read, or is of no use
		a.end()
		a.release()
	}
	buf := make([]byte, copyBuffer)
	for {
		n, err := resp.Body.Read(buf)
		a.idle.Reset(wire.IdleTimeout)
		send := s.next(buf[:n], errors.Is(err, io.EOF), event)
		a.failed = err != nil && a.cut(err, s)
		opens := false
		if !begun {
			begin.known = begin.known || s.skipped // an event that is too long to be read
			send, opens = begin.opened(send, errors.Is(err, io.EOF))
		}
		switch {
		case !begun && begin.none != nil:
			a.failed = true
			_ = resp.Body.Close() // of no use
			a.end()
			return a.none(begin.none)
		case !begun && !opens && err != nil:
			_ = resp.Body.Close() // of no use
			a.end()
			return problem{code: http.StatusBadGateway, message: a.broken(), next: true}
		case opens:
			begun = true
			copyHeader(a.w.Header(), resp.Header)
			if h := a.w.Header(); !wire.SaysStream(h) {
				h.Set("Content-Type", eventStream)
			}
			a.w.WriteHeader(resp.StatusCode)
		}
		if a.failed && (a.in.op == opResponses || !errors.Is(err, io.EOF)) {
			send = append(send[:len(send)-min(s.rest, len(send))], report.failure(problem{code: http.StatusBadGateway, message: a.broken()})...)
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
			go func() { // ends with the answer, or when the time to drain it is over
				defer finish()
				a.drain(resp.Body, s, report)
			}()
			return nil //nolint:nilerr // nobody is left who could be told
		}
	}
}

// cut reports whether an answer that was read up to an error has no end that its vendor meant. A body may also end without an
// error where the vendor broke off; its client gets the same bytes, and of a response its end besides. An event that is too long
// to be read may have been the end.
func (a *attempt) cut(err error, s *events) bool {
	return !errors.Is(err, io.EOF) || a.tally.failed || !a.tally.count.Over() && !s.skipped
}

// drain reads the rest of an answer, so that its usage is known.
func (a *attempt) drain(body io.Reader, s *events, report *reporter) {
	a.left() // the client's context may not have ended yet, if a write failed
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
