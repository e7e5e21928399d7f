// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire is what all vendors' packages do in the same way on the connection: check an address, send requests
// to that address only, bound what a server may return, and describe failures without secrets.
package wire

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/redact"
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
	// HeaderTimeout is how long a response may take to begin, and how long a stream may go on without text, thinking
	// or calls, unless a client is configured otherwise. A model may think that long before it says anything.
	HeaderTimeout = 10 * time.Minute

	// maxMessage bounds the vendor's text in an error, in bytes.
	maxMessage = 512

	// longestRetryAfter is the longest pause that a vendor can ask for. No policy waits that long.
	longestRetryAfter = 24 * time.Hour

	// StatusOverloaded is Anthropic's own status for a service that has too much to do. Gateways use it, too.
	StatusOverloaded = 529
)

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

// Client returns an HTTP client that follows no redirect, so that a key is sent to the configured address only, and only
// if its hosts permit that. If transport is nil, it is one that uses no proxy, does not reach metadata services, and waits
// for the header of an answer for headerTimeout.
func Client(headerTimeout time.Duration, transport http.RoundTripper, hosts egress.Hosts) *http.Client {
	if transport == nil {
		own := egress.ForProviders().Transport()
		own.ResponseHeaderTimeout = headerTimeout
		transport = own
	}
	return &http.Client{
		Transport:     boundedErrors{hosts.Transport(transport)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
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
// there is neither, and at most a day. A date is compared with the server's own clock if the response shows it.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return atMostADay(ms / 1000)
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return atMostADay(s)
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestRetryAfter)
}

func atMostADay(seconds float64) time.Duration {
	if seconds <= 0 || seconds != seconds {
		return 0
	}
	return time.Duration(min(seconds, longestRetryAfter.Seconds()) * float64(time.Second))
}

// IsPage reports whether the body of a response is a page for people, such as that of a proxy.
func IsPage(h http.Header, body []byte) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// IsSuccess reports whether a response may have an answer, which need not have the status 200.
func IsSuccess(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices
}

// ReadWhole reads an answer that is not a stream. It fits if it is not longer than MaxAnswer.
func ReadWhole(from io.Reader) (data []byte, fits bool, err error) {
	data, err = io.ReadAll(io.LimitReader(from, MaxAnswer+1))
	return bytes.TrimPrefix(data, byteOrderMark), len(data) <= MaxAnswer, err
}

// Refusal describes a refused request whose body says nothing that can be shown.
func Refusal(status int, page bool) string {
	text := http.StatusText(status)
	switch {
	case status == StatusOverloaded:
		text = "Overloaded"
	case text == "":
		text = "the provider gave no reason"
	}
	if page {
		text += " (the answer is an HTML page, perhaps of a proxy; check baseURL)"
	}
	return text
}

// RefusedKey describes a request that was refused with 401 or 403. The vendor's own text is not shown, because it may
// repeat parts of the key.
func RefusedKey(status int, page bool) string {
	switch {
	case page:
		return Refusal(status, page)
	case status == http.StatusForbidden:
		return "the provider does not permit this request with this API key"
	default:
		return "the provider refused the API key"
	}
}

// Key is an API key, which no text may repeat.
type Key string

// Scrub removes the key from a vendor's text and shortens it.
func (k Key) Scrub(s string) string {
	s = redact.KnownOf(string(k)).Remove(s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessage {
		return s
	}
	return clip.Text(s, maxMessage) + "…"
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

// Unsent reports whether a request failed before any of it was sent, because there was no connection.
func Unsent(err error) bool {
	op, dialled := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return dialled && op.Op == "dial" || untrusted || errors.Is(err, egress.ErrRefused)
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
