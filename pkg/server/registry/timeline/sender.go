// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"net/http"

	"github.com/platform-ai/platform/pkg/server/writetimeout"
	"github.com/platform-ai/platform/pkg/sse"
)

// writeError is a failure to send to the client.
type writeError struct{ err error }

func (e *writeError) Error() string { return "write to the client: " + e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

// sender writes to a client that may be slow or gone.
type sender struct{ out *writetimeout.Writer }

func newSender(w http.ResponseWriter, o *Options) *sender {
	return &sender{writetimeout.NewWriter(w, o.WriteTimeout)}
}

// begin sends the header, so that the client knows that it is connected.
func (s *sender) begin() error {
	sse.Begin(s.out)
	return s.send(nil)
}

// send writes frames and flushes them. Its errors are of type *writeError.
func (s *sender) send(frames []byte) error {
	if len(frames) > 0 {
		if _, err := s.out.Write(frames); err != nil {
			return &writeError{err}
		}
	}
	if err := s.out.FlushError(); err != nil {
		return &writeError{err}
	}
	return nil
}
