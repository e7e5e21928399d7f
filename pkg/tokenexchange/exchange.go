// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenexchange exchanges the transaction token of a task for one with which a child of the task goes on in the
// same transaction, at the token service that the operator names (RFC 8693, draft-ietf-oauth-transaction-tokens). The
// server does so for the tasks of callers, workers for the tasks that they delegate.
//
//	options.go   flags, their rules, and how they reach a worker
//	exchange.go  one exchange
//	token.go     what is required of the token that the service returns
//
// A new token never has more scopes than the transaction has. A service that does not answer, or that issues anything else than a
// token of the same transaction with the scopes that were asked for, leads to an error, and so to no task. Errors and metrics contain
// no part of a token or of an answer, because either may be a secret.
//
// A run in a Pod has the token of its task as a file, which the programs of a model cannot read. A worker on a server's machine gets it
// on its standard input; commands there, which have no network, do not get it.
package tokenexchange

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
)

const (
	grantType = "urn:ietf:params:oauth:grant-type:token-exchange"
	// TypeTransaction is the type of transaction tokens in an exchange.
	TypeTransaction = "urn:ietf:params:oauth:token-type:txn_token"
	// maxAnswer is the maximum length of the service's answer, in bytes.
	maxAnswer = 64 << 10
)

// Cause is why an exchange failed, for metrics.
type Cause string

// Causes.
const (
	// CauseScope means that the transaction lacks a scope that its child is to have; nothing was asked.
	CauseScope Cause = "scope_not_in_transaction"
	// CauseSubject means that the token to be exchanged has expired; nothing was asked.
	CauseSubject Cause = "subject_expired"
	// CauseUnreachable and CauseTimeout mean that there was no answer, or not a whole one.
	CauseUnreachable Cause = "unreachable"
	CauseTimeout     Cause = "timeout"
	// CauseDenied means that the service refused, and CauseUnavailable that it failed.
	CauseDenied      Cause = "denied"
	CauseUnavailable Cause = "unavailable"
	// CauseAnswer means that the answer is not one of RFC 8693, and CauseToken that the token is not what was asked for.
	CauseAnswer Cause = "invalid_answer"
	CauseToken  Cause = "invalid_token"
)

// Error is a failed exchange. Its text contains nothing secret.
type Error struct {
	Cause   Cause
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Refused reports whether another try of the same exchange cannot succeed, because the transaction does not permit it.
func (e *Error) Refused() bool {
	return e.Cause == CauseScope || e.Cause == CauseSubject || e.Cause == CauseDenied
}

func failed(c Cause, format string, args ...any) *Error {
	return &Error{Cause: c, Message: fmt.Sprintf(format, args...)}
}

// Service exchanges tokens. Its methods may be called concurrently.
type Service struct {
	o      Options
	client *http.Client
	clock  clock.PassiveClock
}

// New makes a Service of checked options. It makes no request.
func New(o Options, c clock.PassiveClock) (*Service, error) {
	transport := egress.ForProviders().Transport() // the operator names the service, which may be in a private network
	if o.CA != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(o.CA)) {
			return nil, errors.New("the authorities of the token service have no certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Service{o: o, clock: c, client: &http.Client{
		Transport: transport, Timeout: o.Timeout,
		// The token would be sent to wherever the service says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Exchange returns a token for a child of the transaction. Subject is the token of the parent. An error is an *Error,
// unless ctx has ended.
func (s *Service) Exchange(ctx context.Context, subject string, t *v1alpha1.TaskTransaction) (string, error) {
	for scope := range strings.FieldsSeq(s.o.ChildScope) {
		if !slices.Contains(t.Scopes, scope) {
			return "", failed(CauseScope, "the transaction has no scope %s, so none of its tasks may have it; it has %s", scope, strings.Join(t.Scopes, " "))
		}
	}
	if err := s.alive(subject); err != nil {
		return "", err
	}
	token, err := s.ask(ctx, subject)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", err
	}
	if err := s.check(token, t); err != nil {
		return "", err
	}
	return token, nil
}

// answer is what the service says, of either kind (RFC 8693, section 2.2).
type answer struct {
	Token string `json:"access_token"`
	Type  string `json:"issued_token_type"`
	Code  string `json:"error"`
}

// ask asks the service for a token.
func (s *Service) ask(ctx context.Context, subject string) (string, error) {
	form := url.Values{
		"grant_type":           {grantType},
		"requested_token_type": {TypeTransaction},
		"subject_token":        {subject},
		"subject_token_type":   {s.o.SubjectTokenType},
		"scope":                {strings.Join(strings.Fields(s.o.ChildScope), " ")},
		"expires_in":           {strconv.FormatInt(int64(s.o.ChildTTL/time.Second), 10)}, // not of the RFC; services ignore what they do not know
	}
	if s.o.Audience != "" {
		form.Set("audience", s.o.Audience)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.Endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", failed(CauseUnreachable, "the address of the token service is not valid")
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return "", s.unanswered(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return "", s.unanswered(err)
	case len(body) > maxAnswer:
		return "", failed(CauseAnswer, "the token service answered with more than %d KiB", maxAnswer>>10)
	}
	return read(response, body)
}

// unanswered is the error for an exchange without an answer.
func (s *Service) unanswered(err error) error {
	if timeout := interface{ Timeout() bool }(nil); errors.As(err, &timeout) && timeout.Timeout() {
		return failed(CauseTimeout, "the token service did not answer within %s", s.o.Timeout)
	}
	if inner, ok := errors.AsType[*url.Error](err); ok { // it names the address, which is in the configuration
		err = inner.Err
	}
	return failed(CauseUnreachable, "the token service cannot be reached: %v", err)
}

// read returns the token of an answer.
func read(response *http.Response, body []byte) (string, error) {
	var a answer
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	decoded := kind == "application/json" && json.Unmarshal(body, &a) == nil
	switch code := response.StatusCode; {
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return "", failed(CauseAnswer, "the token service answered with a redirection (%d), which is not followed", code)
	case code >= http.StatusInternalServerError, code == http.StatusTooManyRequests:
		return "", failed(CauseUnavailable, "the token service failed (%d)", code)
	case code != http.StatusOK:
		return "", failed(CauseDenied, "the token service refused (%d%s)", code, known(a.Code))
	case !decoded || a.Token == "":
		return "", failed(CauseAnswer, "the token service answered without a token")
	case a.Type != TypeTransaction:
		return "", failed(CauseAnswer, "the token service did not issue a transaction token")
	}
	return a.Token, nil
}

// known returns an error code of the service for a message, if it is one of RFC 6749 or RFC 8693. Others are not shown,
// because they could be anything.
func known(code string) string {
	switch code {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target":
		return ", " + code
	}
	return ""
}
