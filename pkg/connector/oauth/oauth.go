// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth asks a provider for the tokens of a person: it exchanges codes, refreshes and revokes tokens (RFC 6749, RFC 7009,
// RFC 7636).
//
//	oauth.go      the client: one request, one answer
//	answer.go     what an answer of a token endpoint says
//	outcome.go    what a failure means: the table of codes and statuses
//	authorize.go  the address where a person gives consent
//	secret.go     tokens, which are not printed
//
// A refresh token that rotates is spent when it is used, and so is a code. So a request is sent once: its body cannot be read again,
// hence neither this package nor the transport repeats it, and no redirect is followed. Whether a person loses a grant depends on what
// the answer was, so each failure has a Class; only a defined subset of answers is Revoked, and everything else keeps the tokens. The
// package golang.org/x/oauth2 hides which of these it was, guesses how clients authenticate by asking twice, and quotes answers in errors.
//
// No error contains a token, a code, a verifier, a secret or a text of the provider, other than an error code in which no part of these
// occurs.
package oauth

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
)

const (
	// Timeout limits one request with its answer.
	Timeout = 30 * time.Second
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 256 << 10
)

// Options configure a Client.
type Options struct {
	// Transport sends the requests; nil dials public addresses only, without a proxy. It must not repeat a request whose body cannot be
	// read again, which http.Transport does not.
	Transport http.RoundTripper
	// Clock is required. It says when tokens end.
	Clock clock.PassiveClock
}

// Client asks token endpoints. Its methods may be called concurrently. Their errors are *Error.
type Client struct {
	// transport is asked itself, because an http.Client would follow redirects: codes, tokens and the client's secret would be sent to
	// wherever the answer says.
	transport http.RoundTripper
	clock     clock.PassiveClock
}

// New makes a Client.
func New(o Options) *Client {
	if o.Transport == nil {
		o.Transport = egress.Guard{}.Transport()
	}
	return &Client{o.Transport, o.Clock}
}

// Endpoint is where a provider gives tokens, and the client that asks there.
type Endpoint struct {
	// TokenURL and RevocationURL are https addresses; Revoke needs the latter.
	TokenURL, RevocationURL string
	ClientID                string
	ClientSecret            Secret
	// Authentication is how the secret is sent; empty is ClientSecretBasic.
	Authentication v1alpha1.ConnectorClientAuthentication
}

// operation is what is asked for.
type operation string

const (
	exchange   operation = "the exchange of the code"
	refresh    operation = "the refresh of the token"
	revocation operation = "the revocation of the token"
)

// Exchange exchanges a code for tokens (RFC 6749, section 4.1.3). redirectURI is that of the consent; verifier is empty without PKCE. A
// code counts as spent after any error, whatever its class: the person gives consent again.
func (c *Client) Exchange(ctx context.Context, e Endpoint, code, redirectURI, verifier string) (*Grant, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirectURI}}
	if verifier != "" {
		form.Set("code_verifier", verifier)
	}
	return c.grant(ctx, &e, exchange, form, code, verifier)
}

// Refresh gets a new access token (RFC 6749, section 6). It names no scope, so the provider gives those of the grant. The refresh token of
// the result is the given one if the provider sends none. The provider may have replaced the given one although the error's class is
// Unknown: it is tried again all the same, because nothing else is there. ctx should not end with the request of a user for this reason.
func (c *Client) Refresh(ctx context.Context, e Endpoint, refreshToken string) (*Grant, error) {
	return c.grant(ctx, &e, refresh, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refreshToken}}, refreshToken)
}

// Revoke revokes a token (RFC 7009). hint is access_token or refresh_token, or empty. A token that is not valid any longer is no error.
func (c *Client) Revoke(ctx context.Context, e Endpoint, token, hint string) error {
	form := url.Values{"token": {token}}
	if hint != "" {
		form.Set("token_type_hint", hint)
	}
	r, err := c.ask(ctx, &e, e.RevocationURL, revocation, form, token)
	if err != nil {
		return err
	}
	a, _ := parse(r.contentType, r.body)
	if !a.failed && r.ok() || codes[a.code] == Revoked && !passing(r.status) {
		return nil
	}
	return r.failure(a)
}

func (c *Client) grant(ctx context.Context, e *Endpoint, op operation, form url.Values, sent ...string) (*Grant, error) {
	r, err := c.ask(ctx, e, e.TokenURL, op, form, sent...)
	if err != nil {
		return nil, err
	}
	a, understood := parse(r.contentType, r.body)
	if !understood || a.failed || !r.ok() {
		return nil, r.failure(a)
	}
	g, problem := a.grant(r.began, form.Get("refresh_token"))
	if problem != "" {
		return nil, r.fails(Misconfigured, "", problem)
	}
	return g, nil
}

// reply is an answer, and what was asked.
type reply struct {
	op          operation
	began       time.Time // before the request, so that tokens do not seem to live longer than they do
	status      int
	retryAfter  time.Duration
	contentType string
	body        []byte   // empty if it was too long
	sent        []string // what no error may contain
}

func (r *reply) ok() bool { return r.status/100 == 2 }

// ask sends one request.
func (c *Client) ask(ctx context.Context, e *Endpoint, address string, op operation, form url.Values, sent ...string) (*reply, error) {
	r := &reply{op: op, began: c.clock.Now(), sent: sent}
	limited, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	id, secret := url.QueryEscape(e.ClientID), url.QueryEscape(e.ClientSecret.Reveal())
	r.sent = append(r.sent, e.ClientSecret.Reveal(), secret, base64.StdEncoding.EncodeToString([]byte(id+":"+secret)))
	basic := e.Authentication != v1alpha1.ClientSecretPost
	if !basic {
		form.Set("client_id", e.ClientID)
		form.Set("client_secret", e.ClientSecret.Reveal())
	}
	text := form.Encode()
	b := &body{text: strings.NewReader(text)}
	request, err := http.NewRequestWithContext(limited, http.MethodPost, address, b)
	if err != nil || request.URL.Scheme != "https" || request.URL.Host == "" {
		return nil, r.fails(Misconfigured, "", "the address is not an https URL")
	}
	request.ContentLength = int64(len(text))
	request.Close = true // on a connection that was kept, and that the provider closes now, the outcome would be unknown
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "platform") // GitHub requires one
	if basic {
		request.SetBasicAuth(id, secret) // encoded as a form (RFC 6749, section 2.3.1)
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, r.unanswered(ctx, err, b.stop())
	}
	defer func() { _ = response.Body.Close() }()
	r.status, r.contentType = response.StatusCode, response.Header.Get("Content-Type")
	r.retryAfter = waitOf(response.Header.Get("Retry-After"), c.clock.Now())
	r.body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil && r.ok() {
		return nil, r.unanswered(ctx, err, true)
	}
	if err != nil || len(r.body) > maxAnswer {
		r.body = nil // the status has to do
	}
	return r, nil
}

// body is read once. It knows whether it was read, and so whether the provider can have got the request.
type body struct {
	mu               sync.Mutex
	text             *strings.Reader
	started, stopped bool
}

// Read gives nothing after stop.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return 0, errors.New("the request has ended")
	}
	b.started = true
	return b.text.Read(p)
}

// Close does nothing.
func (*body) Close() error { return nil }

// stop reports whether any part was read, and prevents it from now on.
func (b *body) stop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	return b.started
}
