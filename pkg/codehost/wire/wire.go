// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is what the drivers of code hosts have in common: the transport below a vendor's client, which turns each answer that is
// not a success into an error of codehost before the client sees it, and the checks of what a host says: of pull requests and their
// reviews and files, of checks, and of issues and their comments.
//
// The clients of the vendors read an answer whole, follow redirects, and quote the answer in their errors. Below them is therefore the
// one place where an answer is bounded and classified. Of an error that a client returns only what this transport put into it is kept.
package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/egress"
)

const (
	// maxAnswer is the largest answer that is read. A page of 50 pull requests has at most 50 bodies of 64 KiB, escaped, and as much again
	// about users and repositories.
	maxAnswer = 24 << 20
	// maxReason is how much of an answer that is no success is looked at.
	maxReason = 64 << 10
	// UserAgent is how the platform names itself, which GitHub requires.
	UserAgent = "platform"
)

// Refusal is the part of an answer that says why a request is refused, as far as a driver looks at it.
type Refusal struct {
	Message          string `json:"message"`
	DocumentationURL string `json:"documentation_url"`
	Errors           []struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Transport bounds and classifies the answers of a host.
type Transport struct {
	next     http.RoundTripper
	patience time.Duration
	// conflict reports whether an answer with status 422 says that what was to be made exists.
	conflict func(Refusal) bool
}

// Client returns an HTTP client for a vendor's client. conflict reports whether an answer with status 422 says that what was to be made
// exists; nil if the host uses 409 for that.
func Client(r codehost.Remote, conflict func(Refusal) bool) *http.Client {
	t := Transport{next: r.Transport, patience: r.Patience, conflict: conflict}
	if t.patience <= 0 {
		t.patience = codehost.DefaultPatience
	}
	return &http.Client{Transport: t}
}

// RoundTrip sends a request. An answer that is no success becomes an error.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), t.patience, fmt.Errorf("%w: no whole answer within %s", codehost.ErrUnavailable, t.patience))
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", UserAgent)
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		defer cancel()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, egress.ErrRefused):
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", codehost.ErrUnavailable, &silentError{err})
	}
	answer.Body = &body{ReadCloser: answer.Body, ctx: ctx, cancel: cancel, left: maxAnswer}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	return nil, t.classify(answer)
}

// silentError is an error of the network, whose text may have come from the host.
type silentError struct{ error }

func (*silentError) Error() string   { return "the connection failed" }
func (e *silentError) Unwrap() error { return e.error }

// classify returns the error for an answer that is no success.
func (t Transport) classify(answer *http.Response) error {
	var reason Refusal
	if raw, err := io.ReadAll(io.LimitReader(answer.Body, maxReason)); err == nil {
		_ = json.Unmarshal(raw, &reason) // an answer of another form gives no reason
	}
	code := answer.StatusCode
	switch {
	case code/100 == 3:
		return codehost.ErrRedirect
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && limited(answer.Header, reason):
		return &codehost.RateLimitError{Until: until(answer.Header, clock.RealClock{}.Now())}
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return codehost.ErrCredential
	case code == http.StatusNotFound, code == http.StatusGone:
		return codehost.ErrNotFound
	case code == http.StatusConflict, code == http.StatusUnprocessableEntity && t.conflict != nil && t.conflict(reason):
		return codehost.ErrConflict
	case code/100 == 4 && code != http.StatusRequestTimeout:
		return &StatusError{Status: code}
	}
	return fmt.Errorf("%w: it answers with status %d", codehost.ErrUnavailable, code)
}

// StatusError is ErrRefused with the status of the answer. Some statuses have a meaning of their own in one request only.
type StatusError struct {
	Status int
}

// Error names the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%v: it answers with status %d", codehost.ErrRefused, e.Status)
}

// Unwrap returns ErrRefused.
func (*StatusError) Unwrap() error { return codehost.ErrRefused }

// Status returns the status of a StatusError; 0 for any other error.
func Status(err error) int {
	if e, ok := errors.AsType[*StatusError](err); ok {
		return e.Status
	}
	return 0
}

// limited reports whether an answer says that there were too many requests. GitHub says so with status 403, too: of all requests in the
// headers, and of those that make much work in the headers or in the reason.
func limited(h http.Header, reason Refusal) bool {
	return h.Get("Retry-After") != "" || h.Get("X-RateLimit-Remaining") == "0" ||
		strings.HasSuffix(reason.DocumentationURL, "secondary-rate-limits") || strings.HasSuffix(reason.DocumentationURL, "#abuse-rate-limits")
}

// until returns when a host answers again; zero if it does not say, or says what cannot be.
func until(h http.Header, now time.Time) time.Time {
	const most = 24 * time.Hour
	var at time.Time
	if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseInt(v, 10, 32); err == nil {
			at = now.Add(time.Duration(s) * time.Second)
		} else if at, err = http.ParseTime(v); err != nil {
			return time.Time{}
		}
	} else if s, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		at = time.Unix(s, 0)
	}
	if at.Before(now) || at.After(now.Add(most)) {
		return time.Time{}
	}
	return at
}

// body is an answer that ends with an error when it is too long or takes too long.
type body struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // it ends with the body
	cancel context.CancelFunc
	left   int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: its answer has more than %d bytes", codehost.ErrUnavailable, maxAnswer)
	}
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		return n, context.Cause(b.ctx)
	}
	return n, err
}

func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// Error returns what of a client's error may be shown: an error of codehost or egress, the end of ctx, or that the host does not answer
// as one of its kind does.
func Error(ctx context.Context, err error, kind string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*codehost.RateLimitError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*egress.HostError](err); ok {
		return e
	}
	for _, known := range []error{
		egress.ErrRefused, codehost.ErrRedirect, codehost.ErrCredential, codehost.ErrNotFound, codehost.ErrConflict, codehost.ErrRefused, codehost.ErrUnavailable,
	} {
		if errors.Is(err, known) {
			return ours(err, known)
		}
	}
	return Malformed(kind)
}

// ours returns the outermost error of a chain that is known or was made from it here, so without what a client wrote around it.
func ours(err, known error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.HasPrefix(e.Error(), known.Error()) {
			return e
		}
	}
	return known
}
