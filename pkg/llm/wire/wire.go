// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is what all vendors' packages do in the same way on the connection: check an address, send requests
// to that address only, bound what a server may return, and describe failures without secrets.
package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// MaxErrorBody bounds how much of an error response is read, in bytes.
	MaxErrorBody = 64 << 10
	// MaxAnswer bounds one answer in bytes of text and arguments. The largest output of a model is some 128k tokens,
	// about half a megabyte.
	MaxAnswer = 8 << 20
	// MaxToolCalls bounds the calls of one answer.
	MaxToolCalls = 128

	// IdleTimeout is how long nothing may arrive on a stream, unless a client is configured otherwise.
	IdleTimeout = 5 * time.Minute
	// HeaderTimeout is how long a response may take to begin, unless a client is configured otherwise. A model may
	// think that long before the first byte.
	HeaderTimeout = 10 * time.Minute

	// maxMessage bounds the vendor's text in an error, in bytes.
	maxMessage = 512
)

// ErrIdle ends a stream on which nothing arrived for too long.
var ErrIdle = errors.New("the model's server sent nothing for too long")

// BaseURL parses a Provider's address. The errors do not show it, because it may hold credentials.
func BaseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, errors.New("baseURL must be an absolute http or https URL")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("baseURL must not hold credentials, a query or a fragment")
	}
	return u, nil
}

// Client returns an HTTP client that follows no redirect, so that a key is sent to the configured address only. If
// transport is nil, it is one that uses no proxy and waits for the header of an answer for headerTimeout.
func Client(headerTimeout time.Duration, transport http.RoundTripper) (*http.Client, error) {
	if transport == nil {
		standard, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("http.DefaultTransport was replaced")
		}
		own := standard.Clone()
		own.Proxy = nil
		own.ResponseHeaderTimeout = headerTimeout
		transport = own
	}
	return &http.Client{
		Transport:     boundedErrors{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// boundedErrors limits the size of error responses, which the SDKs read as a whole, so that a hostile or broken
// server cannot fill the memory.
type boundedErrors struct{ next http.RoundTripper }

func (t boundedErrors) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		res.Body = http.MaxBytesReader(nil, res.Body, MaxErrorBody)
	}
	return res, err
}

// RetryAfter reads retry-after-ms and Retry-After (RFC 9110), which holds seconds or an HTTP date. It returns 0 if
// there is neither.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		if s <= 0 || s != s {
			return 0
		}
		// A day is longer than any policy waits, and far from overflow.
		return time.Duration(min(s, 86400) * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// Key is an API key, which no text may repeat.
type Key string

// Scrub removes the key from a vendor's text and shortens it.
func (k Key) Scrub(s string) string {
	if len(k) >= 4 {
		s = strings.ReplaceAll(s, string(k), "[REDACTED]")
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Describe describes a failed connection without its URL.
func (k Key) Describe(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	var op *net.OpError
	switch {
	case err == nil:
		return "no answer"
	case errors.As(err, &op) && op.Op == "dial":
		return "cannot connect: " + k.Scrub(op.Err.Error())
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "connection closed by the server"
	default:
		return k.Scrub(err.Error())
	}
}

// SaysTooLong recognises, by their words, errors about a conversation that does not fit the model's context. Servers
// and gateways often give no code for it.
func SaysTooLong(message string) bool {
	m := strings.ToLower(message)
	for _, phrase := range []string{"context length", "context window", "context size", "context limit", "prompt is too long", "too many tokens"} {
		if strings.Contains(m, phrase) {
			return true
		}
	}
	return false
}

// IsSyntax reports whether a stream could not be decoded.
func IsSyntax(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}
