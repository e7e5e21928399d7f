// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// maxError is how much of an error answer is kept, in bytes.
const maxError = 1 << 20

// answer receives an answer of the chain. Its body goes to out as it arrives; the body of an error is kept.
type answer struct {
	ctx    context.Context //nolint:containedctx // of the request that is answered; CloseNotify needs it
	header http.Header
	code   int // 0 until the chain answers
	// begin is called once, with the status code of an answer that is not an error, before its body.
	begin func(code int)
	out   io.Writer
	// client is the connection of an answer that is passed on; nil if the answer is only read here.
	client *http.ResponseController
	err    bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	if a.code != 0 || code < http.StatusOK {
		return
	}
	a.code = code
	if !a.failed() && a.begin != nil {
		a.begin(code)
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if !a.failed() {
		return a.out.Write(p)
	}
	if rest := maxError - a.err.Len(); rest > 0 {
		a.err.Write(p[:min(len(p), rest)])
	}
	return len(p), nil
}

// FlushError sends what was written, except for an error that has yet to be translated.
func (a *answer) FlushError() error {
	a.WriteHeader(http.StatusOK)
	if a.failed() || a.client == nil {
		return nil
	}
	return a.client.Flush()
}

// SetWriteDeadline bounds how long the client may take.
func (a *answer) SetWriteDeadline(t time.Time) error {
	if a.client == nil {
		return nil
	}
	return a.client.SetWriteDeadline(t)
}

// Flush is FlushError for callers that ignore errors.
func (a *answer) Flush() { _ = a.FlushError() }

// CloseNotify reports that the client has disconnected. The chain's own wrappers flush only writers that have this
// method.
func (a *answer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(a.ctx, func() { gone <- true })
	return gone
}

func (a *answer) failed() bool { return a.code >= http.StatusBadRequest }

// problem returns the error that the chain answered with, or nil.
func (a *answer) problem() error {
	if !a.failed() {
		return nil
	}
	return statusProblem(a.code, a.err.Bytes())
}
