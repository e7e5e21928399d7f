// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// silence is how long a stream may be silent.
const silence = 30 * time.Second

// Why a stream ended before the result.
var (
	// ErrCut: the connection ended before the result. The prompt goes on: Resume reads the rest.
	ErrCut = errors.New("the stream was cut")
	// ErrSilent: nothing came for half a minute, not even a sign of life. It is in a chain with ErrCut.
	ErrSilent = errors.New("the runtime was silent for " + silence.String())
)

// Stream reads the events of a prompt. It is used by one goroutine.
type Stream struct {
	body io.ReadCloser
	in   *bufio.Reader
	// end ends the request; its error is then why.
	end   func(error)
	cause func() error
	watch clock.Timer

	// session, generation and prompt are whose events are expected.
	session, prompt string
	generation      uint64
	maxLine, maxEnd int64
	last            uint64
	ended           bool
	calls           map[string]bool // whether each call has ended
	permissions     map[string]bool // whether each one was settled
	// partly is set for a stream that does not begin with the first event: then calls and permissions may be unknown.
	partly bool
}

// Last is the number of the last event that was read.
func (s *Stream) Last() uint64 { return s.last }

// Close ends the reading. The prompt goes on.
func (s *Stream) Close() error {
	s.watch.Stop()
	s.end(nil)
	return s.body.Close()
}

// Next returns the next event; signs of life are left out. After the result it returns io.EOF. An error of ErrCut says that the
// connection ended, and one of ErrProtocol that the runtime sent what it must not.
func (s *Stream) Next() (*Event, error) {
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		if s.ended {
			return nil, wrong("there is more after the result")
		}
		e, err := DecodeEvent(line)
		if err != nil {
			return nil, err
		}
		if e.Type == EventAlive {
			continue
		}
		return e, s.follow(e, int64(len(line)))
	}
}

// line returns the next line, io.EOF after the result, or why there is none.
func (s *Stream) line() ([]byte, error) {
	var long []byte
	// Only waiting for the runtime counts as its silence.
	defer s.watch.Stop()
	for {
		s.watch.Reset(silence)
		part, err := s.in.ReadSlice('\n')
		if int64(len(long)+len(part)) > s.maxLine {
			return nil, wrong("a line has more than %d bytes", s.maxLine)
		}
		if err == nil && long == nil {
			return part, nil
		}
		long = append(long, part...)
		switch {
		case err == nil:
			return long, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case s.ended && errors.Is(err, io.EOF) && len(long) == 0:
			return nil, io.EOF
		}
		if why := s.cause(); why != nil {
			err = why
		}
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w before its result", ErrCut)
		}
		return nil, fmt.Errorf("%w: %w", ErrCut, err)
	}
}

// follow checks an event against those before it.
func (s *Stream) follow(e *Event, size int64) error {
	if e.Seq != s.last+1 {
		return wrong("event %d follows event %d", e.Seq, s.last)
	}
	s.last = e.Seq
	if (e.Type == EventAccepted) != (e.Seq == 1) {
		return wrong("the first event, and no other, must be of type accepted")
	}
	switch e.Type {
	case EventAccepted:
		if e.Session != s.session || e.Generation != s.generation || e.Prompt != s.prompt {
			return wrong("the stream is that of another prompt: session %s, generation %d, prompt %s", e.Session, e.Generation, e.Prompt)
		}
	case EventResult:
		s.ended = true
		if size > s.maxEnd {
			return wrong("the result has %d bytes, more than %d", size, s.maxEnd)
		}
		return s.allSettled()
	case EventCallStarted, EventCallChanged, EventCallEnded:
		return s.followCall(e)
	case EventPermissionRequested, EventPermissionSettled:
		return s.followPermission(e)
	}
	return nil
}

func (s *Stream) followCall(e *Event) error {
	ended, known := s.calls[e.Call.ID]
	if e.Type == EventCallStarted && known || e.Type != EventCallStarted && (ended || !known && !s.partly) {
		return wrong("a tool call must start once, before it changes and ends, and end at most once")
	}
	s.calls[e.Call.ID] = e.Type == EventCallEnded
	return nil
}

func (s *Stream) followPermission(e *Event) error {
	settled, known := s.permissions[e.Permission.ID]
	if e.Type == EventPermissionRequested && known || e.Type == EventPermissionSettled && (settled || !known && !s.partly) {
		return wrong("a permission must be requested once, and settled once after that")
	}
	s.permissions[e.Permission.ID] = e.Type == EventPermissionSettled
	return nil
}

// allSettled returns an error if a permission is open.
func (s *Stream) allSettled() error {
	for id, settled := range s.permissions {
		if !settled {
			return wrong("the permission %s was not settled before the result", id)
		}
	}
	return nil
}
