// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// ended returns the error for the end of a stream; nil if it is complete. A stream is complete if the model said why
// it stopped. One that ends earlier, for whatever reason, is cut.
func (c *Client) ended(ctx context.Context, a *answer, err error) error {
	var inBand *inBandError
	var stall *wire.StallError
	switch {
	case errors.As(err, &inBand):
		e := c.classify(vendorErrorOf([]byte(inBand.data)), 0, false, 0)
		e.Accepted = true
		return e
	case a.stop != "":
		// A failure after the stop reason can lose nothing.
		return nil
	case errors.As(context.Cause(ctx), &stall):
		return &llm.Error{Class: llm.ClassCutStream, Message: stall.Error(), Err: stall}
	case ctx.Err() != nil:
		return &llm.Error{Class: llm.ClassCanceled, Message: "the run was stopped", Err: ctx.Err()}
	case wire.IsSyntax(err):
		return &llm.Error{Class: llm.ClassMalformed, Message: "an event of the stream is not valid JSON", Err: err}
	case err != nil && !errors.Is(err, io.EOF):
		return &llm.Error{Class: llm.ClassCutStream, Message: "the stream broke off: " + c.key.Describe(err), Err: err}
	case a.events == 0:
		return malformed("the stream was empty")
	case a.over && len(a.blocks) == 0:
		return malformed("the answer has neither content nor a stop reason")
	default:
		return &llm.Error{Class: llm.ClassCutStream, Message: "the stream ended before the model was done"}
	}
}

// refused classifies a request that did not return a stream.
func (c *Client) refused(ctx context.Context, res *http.Response, err error) error {
	if ctx.Err() != nil {
		return &llm.Error{Class: llm.ClassCanceled, Message: "the run was stopped", Err: ctx.Err()}
	}
	if res == nil {
		return &llm.Error{Class: llm.ClassUnreachable, Message: c.key.Describe(err), Unsent: wire.Unsent(err), Err: err}
	}
	if res.StatusCode < http.StatusBadRequest {
		return &llm.Error{
			Class: llm.ClassInvalidRequest, Status: res.StatusCode,
			Message: "the server answered with a redirect or an empty success; check baseURL",
		}
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, wire.MaxErrorBody))
	return c.classify(vendorErrorOf(body), res.StatusCode, wire.IsPage(res.Header, body), wire.RetryAfter(res.Header, c.clock.Now()))
}

// vendorError is what a server says about a failure.
type vendorError struct{ Message, Type string }

func vendorErrorOf(body []byte) vendorError {
	var envelope struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return vendorError{}
	}
	var v vendorError
	var text string
	switch {
	case json.Unmarshal(envelope.Error, &text) == nil: // a gateway's
		v.Message = text
	case json.Unmarshal(envelope.Error, &v) != nil:
		v.Message = envelope.Message
	}
	return v
}

// classify makes the error of a failure. Status is 0 for one that was reported inside a stream; page is set if the
// server answered with a page for people.
func (c *Client) classify(v vendorError, status int, page bool, after time.Duration) *llm.Error {
	if status == 0 {
		status = statusOf(v.Type)
	}
	e := &llm.Error{Class: classOf(v, status), Status: status, Code: c.key.Scrub(v.Type), RetryAfter: after}
	switch {
	case e.Class == llm.ClassAuth:
		e.Message = wire.RefusedKey(status, page)
	case v.Message != "":
		e.Message = c.key.Scrub(v.Message)
	default:
		e.Message = wire.Refusal(status, page)
	}
	return e
}

// statusOf returns the status that a type of error has outside of streams.
func statusOf(kind string) int {
	switch kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "authentication_error":
		return http.StatusUnauthorized
	case "billing_error":
		return http.StatusPaymentRequired
	case "permission_error":
		return http.StatusForbidden
	case "not_found_error":
		return http.StatusNotFound
	case "request_too_large":
		return http.StatusRequestEntityTooLarge
	case "rate_limit_error":
		return http.StatusTooManyRequests
	case "overloaded_error":
		return wire.StatusOverloaded
	default:
		return http.StatusInternalServerError
	}
}

func classOf(v vendorError, status int) llm.Class {
	switch {
	case status == http.StatusPaymentRequired, strings.Contains(v.Message, "credit balance is too low"):
		return llm.ClassQuota
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.ClassAuth
	case status == http.StatusTooManyRequests:
		return llm.ClassRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly,
		status >= http.StatusInternalServerError:
		return llm.ClassServer
	case status == http.StatusRequestEntityTooLarge, wire.SaysTooLong(v.Message):
		return llm.ClassContextTooLong
	default:
		return llm.ClassInvalidRequest
	}
}

// learn notes that the server does not support caching, or a hint, and reports whether to send the request again.
func (c *Client) learn(err error, req llm.Request, lacks map[string]bool) bool {
	var e *llm.Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Status == http.StatusBadRequest && strings.Contains(e.Message, "cache_control") {
		return !c.noCaching.Swap(true)
	}
	return c.refusesHint(req, e, lacks)
}
