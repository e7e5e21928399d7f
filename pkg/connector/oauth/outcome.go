// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
)

// Class says what a failure means for the tokens.
type Class string

// Classes. All but Revoked keep the tokens.
const (
	// Revoked means that the provider does not honour the refresh token any longer. Only a refresh fails so.
	Revoked Class = "Revoked"
	// Misconfigured means that nothing changes until somebody corrects the ConnectorProvider, the Secret, or the client at the provider.
	Misconfigured Class = "Misconfigured"
	// Transient means that it may pass: the request was not sent, or the provider, or something in between, did not carry it out.
	Transient Class = "Transient"
	// Rejected means that the provider refused this request.
	Rejected Class = "Rejected"
	// Unknown means that the request was sent, and may have been carried out.
	Unknown Class = "Unknown"
)

// Error is a failure. Its text contains nothing secret, and no text of the provider besides Code.
type Error struct {
	Class Class
	// Code is the code of an error of the provider, such as invalid_grant; empty if there is none that may be shown.
	Code string
	// Status is the status of the answer; 0 if there was none.
	Status int
	// RetryAfter is how long the provider asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	// Message says what failed, and why.
	Message string
	// ended is set if the caller's context has ended.
	ended error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the error of the caller's context if that has ended.
func (e *Error) Unwrap() error { return e.ended }

// codes are the codes of errors that mean the same whatever the status is, unless that says that the failure passes.
var codes = map[string]Class{
	// RFC 6749, section 5.2
	"invalid_grant":          Revoked,
	"invalid_client":         Misconfigured,
	"unauthorized_client":    Misconfigured,
	"unsupported_grant_type": Misconfigured,
	"invalid_scope":          Misconfigured,
	"invalid_request":        Rejected,
	// RFC 6749, section 4.1.2.1; some endpoints for tokens have them, too. RFC 8628 has the third.
	"server_error":            Transient,
	"temporarily_unavailable": Transient,
	"slow_down":               Transient,
	// RFC 7009, section 2.2.1, and RFC 8707, section 2
	"unsupported_token_type": Misconfigured,
	"invalid_target":         Misconfigured,
	// GitHub
	"bad_refresh_token":            Revoked,
	"bad_verification_code":        Rejected,
	"incorrect_client_credentials": Misconfigured,
	"redirect_uri_mismatch":        Misconfigured,
	"application_suspended":        Misconfigured,
	// Slack
	"invalid_refresh_token": Revoked,
	"token_revoked":         Revoked,
	"account_inactive":      Revoked,
	"invalid_code":          Rejected,
	"code_already_used":     Rejected,
	"bad_client_secret":     Misconfigured,
	"invalid_client_id":     Misconfigured,
	"bad_redirect_uri":      Misconfigured,
	"invalid_grant_type":    Misconfigured,
	"ratelimited":           Transient,
	"rate_limited":          Transient,
	"internal_error":        Transient,
	"fatal_error":           Transient,
	"service_unavailable":   Transient,
	"request_timeout":       Transient,
}

// statuses are what a status means without such a code. Others are Rejected, and from 500 on Transient.
var statuses = map[int]Class{
	http.StatusUnauthorized:      Misconfigured,
	http.StatusForbidden:         Transient, // of a firewall: OAuth does not use it
	http.StatusNotFound:          Misconfigured,
	http.StatusMethodNotAllowed:  Misconfigured,
	http.StatusProxyAuthRequired: Transient,
	http.StatusGone:              Misconfigured,
}

// passing reports whether a status means that a failure passes, whatever the body says.
func passing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status == http.StatusTooEarly
}

// classify says what an answer means that gives no tokens.
func classify(op operation, status int, a answer) Class {
	class, known := codes[a.code]
	switch {
	case passing(status):
		return Transient
	case known && class == Revoked && op != refresh:
		return Rejected
	case known:
		return class
	case status/100 == 2 && !a.failed:
		return Transient // a page of something in between
	case status/100 == 3:
		return Misconfigured
	}
	if class, known = statuses[status]; known {
		return class
	}
	return Rejected
}

// means is what a class says to people.
var means = map[Class]string{
	Revoked:       "the grant is not honoured any longer",
	Misconfigured: "the client or an address of the ConnectorProvider has to be corrected",
	Transient:     "this may pass",
	Rejected:      "the provider refused the request",
	Unknown:       "the provider may have carried out the request",
}

// codePattern matches the codes that are shown: of the characters of RFC 6749 those that codes have. Tokens hardly do without others.
var codePattern = regexp.MustCompile(`^[a-z_]{1,64}$`)

// failure is the error for an answer that gives no tokens.
func (r *reply) failure(a answer) *Error {
	what := fmt.Sprintf("the provider answered with status %d", r.status)
	switch {
	case r.status/100 == 3:
		what += ", a redirect, which is not followed"
	case r.ok() && !a.failed:
		what += " and without tokens"
	}
	return r.fails(classify(r.op, r.status, a), a.code, what)
}

func (r *reply) fails(class Class, code, what string) *Error {
	if !codePattern.MatchString(code) || redact.Fragments(code, r.sent) != code {
		code = ""
	}
	if code != "" {
		what += fmt.Sprintf(" (%s)", code)
	}
	return &Error{
		Class: class, Code: code, Status: r.status, RetryAfter: r.retryAfter,
		Message: fmt.Sprintf("%s failed: %s: %s", r.op, what, means[class]),
	}
}

// unanswered is the error for a request without a whole answer. Errors of the transport may quote an answer, so they are not repeated.
func (r *reply) unanswered(ctx context.Context, err error, sent bool) *Error {
	class := Transient
	var what string
	timeout := interface{ Timeout() bool }(nil)
	switch {
	case sent:
		class, what = Unknown, "the connection ended before the answer was complete"
	case errors.Is(err, egress.ErrRefused):
		class, what = Misconfigured, "the host has an address that is private, local or reserved"
	case isA[*net.DNSError](err):
		what = "the name of the host could not be resolved"
	case isA[*tls.CertificateVerificationError](err):
		what = "the certificate of the host is not valid"
	default:
		what = "the host could not be reached"
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		what = fmt.Sprintf("there was no answer within %s", Timeout)
		if !sent {
			what = "the host could not be reached in time"
		}
	}
	e := r.fails(class, "", what)
	if e.ended = ctx.Err(); e.ended != nil {
		e.Message = fmt.Sprintf("%s was cancelled: %s", r.op, means[class])
	}
	return e
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// maxWait limits RetryAfter.
const maxWait = 24 * time.Hour

// waitOf reads Retry-After: seconds, or a date (RFC 9110, section 10.2.3).
func waitOf(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	if date, err := http.ParseTime(value); err == nil && date.After(now) {
		return min(date.Sub(now), maxWait)
	}
	return 0
}
