// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// A vendor of the same protocol is quoted. Across protocols its failure keeps the status and the pause that it asks for, and gets
// the type and the code that clients look for (failureForms). After an answer has begun, its stream ends with an error. The stream
// of a response ends with response.failed, which has the response, or with a numbered error if the vendor has not created one.

// failureForm is how the APIs name one kind of failure. Its status is the vendor's own, whatever the API of the client.
type failureForm struct {
	class llm.Class
	// status limits the row to failures with that status; 0 is any other one.
	status int
	// openAI and code are the type and the code in OpenAI's form; anthropic is the type in Anthropic's.
	openAI, code, anthropic string
	// says are words that clients of Anthropic's API look for, which has no codes.
	says string
}

// failureForms are the kinds of failures that clients tell apart. They are the same in both directions.
var failureForms = []failureForm{
	{llm.ClassRateLimited, 0, "rate_limit_error", "rate_limit_exceeded", "rate_limit_error", ""},
	{llm.ClassQuota, 0, "insufficient_quota", "insufficient_quota", "billing_error", ""},
	{llm.ClassContextTooLong, http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large", "request_too_large", ""},
	{llm.ClassContextTooLong, 0, "invalid_request_error", codeTooLong, "invalid_request_error", "prompt is too long"},
	{llm.ClassServer, http.StatusServiceUnavailable, codeServer, "server_is_overloaded", "overloaded_error", ""},
	{llm.ClassServer, wire.StatusOverloaded, codeServer, "server_is_overloaded", "overloaded_error", ""},
}

// Codes of OpenAI's API.
const (
	codeServer  = "server_error"
	codeTooLong = "context_length_exceeded"
)

// formOf returns how the APIs name a failure; nil if they tell it by its status alone.
func formOf(class llm.Class, status int) *failureForm {
	var found *failureForm
	for i := range failureForms {
		f := &failureForms[i]
		if f.class == class && (f.status == status || f.status == 0 && found == nil) {
			found = f
		}
	}
	return found
}

// kind returns the type of the error in the envelope of a protocol.
func (p *problem) kind(style llm.Protocol) string {
	switch f := p.form; {
	case f == nil:
		return kind(style, p.code)
	case style == llm.ProtocolAnthropic:
		return f.anthropic
	default:
		return f.openAI
	}
}

// codeOf returns the code of the error in OpenAI's form; empty for none.
func (p *problem) codeOf() string {
	if p.form != nil {
		return p.form.code
	}
	return p.reason
}

// says returns the message of the error in the envelope of a protocol.
func (p *problem) says(style llm.Protocol) string {
	text := p.Error()
	if f := p.form; f != nil && style == llm.ProtocolAnthropic && f.says != "" && !strings.Contains(text, f.says) {
		return f.says + ": " + text
	}
	return text
}

// failure returns the event with which a stream of a chat completion or a message ends that failed.
func failure(op operation, p problem) []byte {
	name, style := "", protocolOf(op)
	if style == llm.ProtocolAnthropic {
		name = kindError
	}
	return sse(name, json.RawMessage(p.envelope(style)))
}

// responseError is the error of a response. It always has a code.
type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *problem) ofResponse() responseError {
	e := responseError{p.codeOf(), p.Error()}
	if e.Code == "" {
		e.Code = codeServer
	}
	return e
}

// The event with which a stream of a response ends that failed, and the status of its response.
const (
	eventFailed    = "response.failed"
	responseFailed = "failed"
)

// errorEvent is the event of a stream of a response that failed before its response was there.
type errorEvent struct {
	Type string `json:"type"`
	responseError
	Param          *string `json:"param"`
	SequenceNumber int64   `json:"sequence_number"`
}

// failedEvent is the event of a response that failed.
type failedEvent struct {
	Type           string          `json:"type"`
	Response       json.RawMessage `json:"response"`
	SequenceNumber int64           `json:"sequence_number"`
}

// failure returns the event with which the stream ends that the vendor did not end. A response is the one that the vendor has
// created, as far as it was known then.
func (r *reporter) failure(p problem) []byte {
	if r.tally.op != opResponses {
		return failure(r.tally.op, p)
	}
	if r.tally.failed || r.tally.count.Over() { // which the vendor has said
		return nil
	}
	var last struct {
		SequenceNumber *int64 `json:"sequence_number"`
	}
	_ = json.Unmarshal(dataOf(r.last), &last) // nothing was said, or not in numbers
	number := int64(0)
	if last.SequenceNumber != nil {
		number = *last.SequenceNumber + 1
	}
	if o, err := parse(r.created); err == nil {
		err = o.set("status", responseFailed)
		if err == nil {
			err = o.set("error", p.ofResponse())
		}
		if err == nil {
			return sse(eventFailed, failedEvent{eventFailed, o.bytes(), number})
		}
	}
	return sse(kindError, errorEvent{Type: kindError, responseError: p.ofResponse(), SequenceNumber: number})
}
