// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// ended returns the error for the end of a stream; nil if it is complete. A stream is complete
// if the model said why it stopped. One that ends earlier, for whatever reason, is cut.
func (c *Client) ended(ctx context.Context, a *answer, err error) error {
	var inBand *ssestream.StreamError
	var stall *wire.StallError
	switch {
	case errors.As(err, &inBand):
		e := c.classify(vendorErrorOf(inBand.Event.Data), http.StatusInternalServerError, false, 0)
		e.Accepted = true
		return e
	case a.stop != "":
		// A failure after the stop reason can only have lost the usage.
		if err == nil {
			a.count.Complete()
		}
		return nil
	case errors.As(context.Cause(ctx), &stall):
		return &llm.Error{Class: llm.ClassCutStream, Message: stall.Error(), Err: stall}
	case ctx.Err() != nil:
		return &llm.Error{Class: llm.ClassCanceled, Message: "the run was stopped", Err: ctx.Err()}
	case wire.IsSyntax(err):
		return &llm.Error{Class: llm.ClassMalformed, Message: "a chunk of the stream is not valid JSON", Err: err}
	case err != nil:
		return &llm.Error{Class: llm.ClassCutStream, Message: "the stream broke off: " + c.key.Describe(err), Err: err}
	case a.chunks == 0:
		return malformed("the stream was empty")
	case !a.begun:
		return malformed("the answer has no choices")
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
	// The SDK has read the body and put it back; its own error drops the
	// status when the body is not the vendor's JSON.
	body, _ := io.ReadAll(io.LimitReader(res.Body, wire.MaxErrorBody))
	e := c.classify(vendorErrorOf(body), res.StatusCode, wire.IsPage(res.Header, body), wire.RetryAfter(res.Header, c.clock.Now()))
	e.Err = refusal(body)
	return e
}

// refusal is the body of an error, from which the client learns.
type refusal []byte

// Error says nothing, because the body may have secrets.
func (refusal) Error() string { return "the server refused the request" }

// vendorError is what a server says about a failure, in the shapes that
// OpenAI-compatible servers use.
type vendorError struct {
	Message, Type, Code, Param string
}

func vendorErrorOf(body []byte) vendorError {
	var envelope struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  any             `json:"detail"`
	}
	if json.Unmarshal(body, &envelope) != nil {
		return vendorError{}
	}
	var text string
	if json.Unmarshal(envelope.Error, &text) == nil && text != "" {
		return vendorError{Message: text}
	}
	var object struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Param   string `json:"param"`
	}
	if json.Unmarshal(envelope.Error, &object) != nil || object.Message == "" && object.Code == nil && object.Type == "" {
		detail, _ := envelope.Detail.(string)
		return vendorError{Message: envelope.Message + detail}
	}
	code, _ := object.Code.(string)
	return vendorError{Message: object.Message, Type: object.Type, Code: code, Param: object.Param}
}

// classify makes the error of a failure. page is set if the server answered with a page for people.
func (c *Client) classify(v vendorError, status int, page bool, after time.Duration) *llm.Error {
	e := &llm.Error{Class: classOf(v, status), Status: status, Code: c.key.Scrub(v.Code), RetryAfter: after}
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

func classOf(v vendorError, status int) llm.Class {
	switch v.Code + " " + v.Type {
	case "context_length_exceeded " + v.Type, v.Code + " exceed_context_size_error":
		return llm.ClassContextTooLong
	case "insufficient_quota " + v.Type, v.Code + " insufficient_quota":
		return llm.ClassQuota
	case "rate_limit_exceeded " + v.Type:
		return llm.ClassRateLimited
	case "invalid_api_key " + v.Type:
		return llm.ClassAuth
	}
	switch {
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

// learn notes an optional parameter that the server does not support, and reports whether to
// send the request again.
func (c *Client) learn(err error, w *way, req llm.Request) bool {
	var e *llm.Error
	var body refusal
	if !errors.As(err, &e) || e.Class != llm.ClassInvalidRequest || !errors.As(err, &body) {
		return false
	}
	if c.refusesHint(req, e.Status, body, w) {
		return true
	}
	if e.Status != http.StatusBadRequest {
		return false
	}
	switch {
	case !w.newMaxTokens && strings.Contains(e.Message, "max_completion_tokens") && strings.Contains(e.Message, "max_tokens"):
		// "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead."
		w.newMaxTokens = true
		c.quirks.NewMaxTokens.Store(true)
	case !w.noUsageOption && !w.whole && RefusesUsage(body):
		w.noUsageOption = true
		c.quirks.NoUsageOption.Store(true)
	case w.thinkingOf != "" && strings.Contains(string(body), "reasoning"):
		// "property 'reasoning_content' is unsupported": some servers write what they do not read.
		w.thinkingOf = ""
		c.quirks.NoThinking.Store(true)
	case req.Whole && !w.whole && RefusesStream(body):
		w.whole = true // a matter of the model, so nothing is noted
	default:
		return false
	}
	return true
}
