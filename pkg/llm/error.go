// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Class sorts failed attempts by what can be done about them.
type Class string

// Classes of failed attempts.
const (
	// ClassAuth means that the key was refused (401, 403).
	ClassAuth Class = "auth"
	// ClassRateLimited means too many requests or tokens for now (429).
	ClassRateLimited Class = "rate_limited"
	// ClassQuota means that the account has no credit left; waiting does not help.
	ClassQuota Class = "quota_exhausted"
	// ClassContextTooLong means that the conversation does not fit the model's context.
	ClassContextTooLong Class = "context_too_long"
	// ClassInvalidRequest means that the vendor refused the request (other 4xx).
	ClassInvalidRequest Class = "invalid_request"
	// ClassServer means that the vendor failed (5xx, or an error inside the stream).
	ClassServer Class = "server_error"
	// ClassUnreachable means no connection, or no answer in time.
	ClassUnreachable Class = "unreachable"
	// ClassCutStream means that the stream ended before the model said that it was done.
	ClassCutStream Class = "cut_stream"
	// ClassMalformed means that the answer violates the vendor's own protocol.
	ClassMalformed Class = "malformed_response"
	// ClassCanceled means that the caller's context ended.
	ClassCanceled Class = "canceled"
)

// Error is a failed attempt. Its text never holds a key, a request header or a
// URL: it goes into events, logs and conditions.
type Error struct {
	Class Class
	// Status is the HTTP status; 0 if there was none.
	Status int
	// Code is the vendor's own error code; it may be empty.
	Code string
	// Message is the error text of the vendor or the connection, without secrets and shortened.
	Message string
	// RetryAfter is the pause that the vendor asked for; 0 if it asked for none.
	RetryAfter time.Duration
	// Unsent is set if there was no connection, so the vendor did not get the request.
	Unsent bool
	// Accepted is set if the vendor had answered with a success and said in the answer that it failed, so that the request may have
	// used tokens.
	Accepted bool
	// Err is the cause; it may be nil. It is not part of the text.
	Err error
}

// Error returns class, status and message.
func (e *Error) Error() string {
	s := "the model request failed: " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func (c Class) Retryable() bool {
	switch c {
	case ClassRateLimited, ClassServer, ClassUnreachable, ClassCutStream, ClassMalformed:
		return true
	case ClassAuth, ClassQuota, ClassContextTooLong, ClassInvalidRequest, ClassCanceled:
		return false
	default:
		return false
	}
}

// Refused reports whether the vendor refused the request before it used any tokens.
func (c Class) Refused() bool {
	switch c {
	case ClassAuth, ClassRateLimited, ClassQuota, ClassContextTooLong, ClassInvalidRequest:
		return true
	case ClassServer, ClassUnreachable, ClassCutStream, ClassMalformed, ClassCanceled:
		return false
	}
	return false
}

// RefusedStatus is Refused by the status of an answer.
func RefusedStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return false
	}
	return status >= http.StatusMultipleChoices && status < http.StatusInternalServerError
}

// Unused reports whether a failed attempt used no tokens: the vendor refused the request, or did not get it.
func Unused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !e.Accepted && (e.Class.Refused() || e.Unsent)
}

// ClassOf returns the class of err: ClassCanceled for an ended context,
// ClassServer for an error that no vendor package classified, "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ClassCanceled
	}
	return ClassServer
}
