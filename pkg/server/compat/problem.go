// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/server/models"
)

// problem is an error that is shown to the client.
type problem struct {
	code    int
	message string
	param   string             // the member of the request that is wrong; empty if there is none
	allow   string             // the methods, with code 405
	after   string             // Retry-After; empty for none
	reason  string             // the member code of an error in OpenAI's form; empty for none
	details *threadUnsupported // of an error in Anthropic's form; nil for none

	// form is how the APIs name the failure of a vendor of the other protocol; nil if they tell it by its status.
	form *failureForm

	// raw is the vendor's own error, in its own form, with its header; nil for an error of this server.
	raw    []byte
	header http.Header
	// next is set if another candidate may succeed.
	next bool
	// key is set if the vendor refused the Provider's key.
	key bool
}

// Error returns the message.
func (p problem) Error() string {
	if p.message == "" {
		return http.StatusText(p.code)
	}
	return p.message
}

func invalid(param, format string, args ...any) problem {
	return problem{code: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)}
}

// kind returns the type of an error in the envelope of a protocol.
func kind(style llm.Protocol, code int) string {
	switch code {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	switch {
	case code < http.StatusInternalServerError:
		return "invalid_request_error"
	case style == llm.ProtocolOpenAI:
		return codeServer
	case code == wire.StatusOverloaded:
		return "overloaded_error"
	}
	return "api_error"
}

type (
	openAIError struct {
		Error openAIDetail `json:"error"`
	}
	openAIDetail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	anthropicError struct {
		Type      string          `json:"type"`
		Error     anthropicDetail `json:"error"`
		RequestID string          `json:"request_id,omitempty"`
	}
	anthropicDetail struct {
		Type    string             `json:"type"`
		Message string             `json:"message"`
		Details *threadUnsupported `json:"details,omitempty"`
	}
)

// envelope returns the body of an error.
func (p problem) envelope(style llm.Protocol) []byte {
	var body any
	if style == llm.ProtocolAnthropic {
		body = anthropicError{Type: "error", Error: anthropicDetail{Type: p.kind(style), Message: p.says(style), Details: p.details}}
	} else {
		e := openAIError{Error: openAIDetail{Type: p.kind(style), Message: p.says(style)}}
		if p.param != "" {
			e.Error.Param = &p.param
		}
		if code := p.codeOf(); code != "" {
			e.Error.Code = &code
		}
		body = e
	}
	return encoded(body)
}

// fail answers with an error. An error that is neither a problem nor one of the API is internal, and its text is not
// shown.
func (h *Handler) fail(ctx context.Context, w http.ResponseWriter, style llm.Protocol, err error) {
	p, ok := asProblem(err)
	if !ok {
		h.o.Sparse.Error(ctx, err, "Request to a vendor's API failed")
		p = problem{code: http.StatusInternalServerError}
	}
	p.write(w, style)
}

// asProblem returns the problem that an error is, or that an API error becomes.
func asProblem(err error) (problem, bool) {
	if p, ok := errors.AsType[problem](err); ok {
		return p, true
	}
	s, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return problem{}, false
	}
	p := ofStatus(s.ErrStatus)
	p.reason = models.LimitReason(err)
	p.next = p.reason != "" // another Provider may have room
	return p, true
}

// ofStatus returns the problem that a Status of the chain becomes.
func ofStatus(s metav1.Status) problem {
	p := problem{code: int(s.Code), message: s.Message}
	if d := s.Details; d != nil && d.RetryAfterSeconds > 0 {
		p.after = strconv.Itoa(int(d.RetryAfterSeconds))
	}
	if p.code < http.StatusBadRequest || p.code == http.StatusInternalServerError {
		p.code, p.message = http.StatusInternalServerError, ""
	}
	return p
}

func (p problem) write(w http.ResponseWriter, style llm.Protocol) {
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/json")
	body := p.raw
	if body == nil {
		body = p.envelope(style)
	}
	copyHeader(h, p.header)
	if p.after != "" {
		h.Set("Retry-After", p.after)
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.reason != "" {
		h.Set(runspec.HeaderReason, p.reason)
	}
	w.WriteHeader(p.code)
	_, _ = w.Write(body) //nolint:gosec // JSON, which browsers do not render; if the client is gone, nobody is left to report an error to
}

// maxStatus is how much of an error of the chain is kept, in bytes.
const maxStatus = 1 << 20

// answer receives the answer of the chain. What Inner writes is passed on. An error of the chain itself, which is a
// Status, is kept and put into the vendor's envelope.
type answer struct {
	http.ResponseWriter

	style llm.Protocol
	call  *call // nil until the request goes to the chain
	code  int   // of an error that is kept
	kept  bytes.Buffer
	sent  bool
}

// direct returns the client's writer, for errors outside of the chain.
func (a *answer) direct() http.ResponseWriter {
	a.sent = true
	return a.ResponseWriter
}

func (a *answer) through() bool { return a.call != nil && a.call.served }

// WriteHeader passes on the code of an answer of Inner.
func (a *answer) WriteHeader(code int) {
	if !a.through() {
		if code >= http.StatusOK {
			a.code = code
		}
		return
	}
	a.sent = a.sent || code >= http.StatusOK
	a.ResponseWriter.WriteHeader(code)
}

// Write passes on what Inner writes.
func (a *answer) Write(p []byte) (int, error) {
	if a.through() {
		a.sent = true
		return a.ResponseWriter.Write(p)
	}
	if room := maxStatus - a.kept.Len(); room > 0 {
		a.kept.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// FlushError sends what was written.
func (a *answer) FlushError() error {
	if !a.through() {
		return nil
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Flush is FlushError for callers that ignore errors.
func (a *answer) Flush() { _ = a.FlushError() }

// CloseNotify is for the chain's own wrappers, which flush only writers that have this method.
func (a *answer) CloseNotify() <-chan bool {
	if n, ok := a.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // k8s.io/apiserver asks every writer for it
		return n.CloseNotify()
	}
	return make(chan bool)
}

// Unwrap lets http.ResponseController find the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// finish answers with the error of the chain, if the request did not reach Inner.
func (a *answer) finish() {
	if a.through() {
		return
	}
	p := problem{code: max(a.code, http.StatusBadRequest)}
	var s metav1.Status
	if json.Unmarshal(a.kept.Bytes(), &s) == nil && s.Kind == "Status" {
		if s.Code == 0 {
			s.Code = int32(p.code)
		}
		p = ofStatus(s)
	}
	if p.after == "" {
		p.after = a.Header().Get("Retry-After")
	}
	p.write(a.direct(), a.style)
}
